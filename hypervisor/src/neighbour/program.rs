// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the program of a neighbour, and the state in which it begins.
//!
//! Each program counts the units that it has done, and the unexpected changes that it found in its registers (`work`)
//! or its memory (`cache`). A unit ends with a YIELD, at which an emulator that runs one CPU at a time switches to the
//! next CPU.

use core::sync::atomic::Ordering::Relaxed;

use abi::Neighbour;
use arch::el1::{El1, Fp};
use arch::insn;
use platform::Region;

use crate::cpu::tenant::{General, Tenant};
use crate::neighbour::place::{BUFFER, CODE, COUNTS, TABLE, memory_word};
use crate::planted;

core::arch::global_asm!(
    r#"
    .section .rodata.neighbour, "a"
    .balign 8

    // x0: address of its counts. x2 to x29 have distinct values, which must not change.
    .global el2_program_work
el2_program_work:
    .irp    n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28
    mov     x\n, #(\n * 65)
    .endr
    mov     x29, #(405 * 65)
1:  mov     x30, xzr
    .irp    n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28
    add     x30, x30, x\n
    .endr
    cmp     x30, x29
    b.ne    3f
2:  .rept   {unit} - 35
    eor     x30, x30, x29
    .endr
    ldr     x1, [x0]
    add     x1, x1, #1
    str     x1, [x0]
    yield
    b       1b
3:  ldr     x1, [x0, #8]
    add     x1, x1, #1
    str     x1, [x0, #8]
    b       el2_program_work
    .global el2_program_work_end
el2_program_work_end:

    // x2, x3: begin and end of its memory. Each line contains its own address.
    .global el2_program_cache
el2_program_cache:
    mov     x4, x2
1:  str     x4, [x4]
    add     x4, x4, #64
    cmp     x4, x3
    b.lo    1b
2:  mov     x4, x2
3:  mov     x6, #{unit}
4:  ldr     x5, [x4]
    cmp     x5, x4
    b.ne    6f
    str     x4, [x4]
5:  add     x4, x4, #64
    subs    x6, x6, #1
    b.ne    4b
    ldr     x1, [x0]
    add     x1, x1, #1
    str     x1, [x0]
    yield
    cmp     x4, x3
    b.lo    3b
    b       2b
6:  ldr     x1, [x0, #8]
    add     x1, x1, #1
    str     x1, [x0, #8]
    str     x4, [x4]
    b       5b
    .global el2_program_cache_end
el2_program_cache_end:
    "#,
    unit = const abi::neighbour::UNIT,
);

arch::symbol_addresses! {
    /// The program of `work`.
    work = el2_program_work;
    work_end = el2_program_work_end;
    /// The program of `cache`.
    cache = el2_program_cache;
    cache_end = el2_program_cache_end;
}

/// Address of the program's vectors.
const VECTORS: u64 = CODE + 0x800;
/// Address of the word that counts units.
pub const DONE: u64 = COUNTS;
/// Address of the word that counts unexpected changes.
pub const DAMAGED: u64 = COUNTS + 8;

/// SCTLR_EL1: the RES1 bits, and M, C, I.
const SCTLR: u64 = 0x30d0_0800 | 1 | 1 << 2 | 1 << 12;
/// TCR_EL1: 39 bits from TTBR0 (T0SZ 25), inner-shareable write-back walks, 4 KiB; nothing from TTBR1
/// (EPD1); physical addresses of 39 bits are within IPS 2 (40 bits).
const TCR: u64 = 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 2 << 32;
/// MAIR_EL1: index 0 Normal write-back.
const MAIR: u64 = 0xff;
/// Descriptor of a block: valid, index 0, EL1 only, inner shareable, accessed.
const BLOCK: u64 = 1 | 3 << 8 | 1 << 10;
/// CPACR_EL1.FPEN: floating point does not trap to EL1.
const CPACR: u64 = 3 << 20;
/// EL1 with SP_EL1, all exceptions masked.
const PSTATE: u64 = 0x3c5;

/// Makes the neighbour begin the program that `does` names; `None` if the neighbour's memory is too
/// small for the program, or this image has no such program.
pub fn begin_program(tenant: &Tenant, does: Neighbour) -> Option<()> {
    let (program, vectors) = match does {
        Neighbour::None => return Some(()),
        Neighbour::Work => (work()..work_end(), 0..0),
        Neighbour::Cache(_) => (cache()..cache_end(), 0..0),
        Neighbour::Hostile => planted::hostile_program()?,
    };
    let end = BUFFER + u64::from(does.kib()) * 1024;
    if end > tenant.memory.size {
        return None;
    }
    copy_instructions(tenant, CODE, program);
    copy_instructions(tenant, VECTORS, vectors);
    finish_program(tenant);
    let mut general = General {
        x: [0; 31],
        pc: CODE,
        pstate: PSTATE,
    };
    general.x[0] = COUNTS;
    general.x[2] = BUFFER;
    general.x[3] = end;
    let el1 = El1 {
        sctlr: SCTLR,
        cpacr: CPACR,
        ttbr0: TABLE,
        tcr: TCR,
        mair: MAIR,
        ..El1::zero()
    };
    // SAFETY: the state is this CPU's own, and its neighbour does not run.
    unsafe {
        tenant.worlds.with(|worlds| {
            worlds.general = general;
            worlds.own = el1;
            worlds.own_fp = Fp::zero();
            worlds.own_errors = 0;
        });
    }
    Some(())
}

/// Copies instructions from this image's constants to `to`.
fn copy_instructions(tenant: &Tenant, to: u64, from: core::ops::Range<u64>) {
    for place in from.clone().step_by(8) {
        // SAFETY: the word is between two of this image's symbols, and its address is aligned. The word after an odd
        // number of instructions is in the same section, or its padding.
        let instructions = unsafe { (place as *const u64).read() };
        memory_word(tenant, to + (place - from.start)).store(instructions, Relaxed);
    }
}

/// Writes the neighbour's table, and makes its new instructions visible to fetches.
fn finish_program(tenant: &Tenant) {
    memory_word(tenant, TABLE).store(BLOCK, Relaxed);
    pages::clean(Region {
        base: tenant.memory.base + CODE,
        size: TABLE - CODE,
    });
    insn::ic_ialluis();
    insn::dsb_ish();
    // TLB entries of the previous program stay valid, because map and table are the same.
    insn::isb();
}
