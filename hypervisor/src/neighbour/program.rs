// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the program of a neighbour, and the state in which it begins.
//!
//! Each program counts the units that it has done, and the unexpected changes that it found in its registers (`work`)
//! or its memory (`cache`). A unit ends with a YIELD, at which an emulator that runs one CPU at a time switches to the
//! next CPU.

use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CPTR_EL2, ID_AA64MMFR0_EL1, MDCR_EL2, Readable};
use abi::Neighbour;
use arch::el1::{self, Auxiliary, Effective, Fp, Stage1, Untrapped};
use arch::el2::{Changing, Fixed};
use arch::insn;
use platform::Region;

use crate::cpu::tenant::{General, Registers, Tenant, more};
use crate::cpu::traps::{HCR_NEIGHBOUR, HCR_STAGE1_OFF, TRAP_CPACR, TRAP_FP};
use crate::machine::machine;
use crate::neighbour::place::{BUFFER, CODE, COUNTS, TABLE, VECTORS, memory_word};
use crate::neighbour::{switch, world};
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

    // x2, x3: start and end of its memory. Each line contains its own address.
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

/// Address of the word that counts units.
pub const DONE: u64 = COUNTS;
/// Address of the word that counts unexpected changes.
pub const DAMAGED: u64 = COUNTS + 8;

/// SCTLR_EL1 at the start: the RES1 bits. Stage 1 is off.
const SCTLR: u64 = 0x30d0_0800;
/// Descriptor of a block: valid, index 0, EL1 only, inner shareable, accessed.
const BLOCK: u64 = 1 | 3 << 8 | 1 << 10;
/// CPACR_EL1.FPEN: floating point does not trap to EL1.
const CPACR: u64 = 3 << 20;
/// EL1 with SP_EL1, all exceptions masked.
const PSTATE: u64 = 0x3c5;

/// MDCR_EL2: TPMCR (5), TPM (6), TDA (9).
const TRAP_COUNTERS_AND_DEBUG: u64 = 1 << 5 | 1 << 6 | 1 << 9;
/// CNTHCTL_EL2.EL1TVT, with FEAT_ECV.
const TRAP_VIRTUAL_TIMER: u64 = 1 << 13;
/// ICH_HCR_EL2: TC (10), TALL0 (11), TALL1 (12), and not En (0).
const NO_INTERFACE: u64 = 1 << 10 | 1 << 11 | 1 << 12;

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
    // SAFETY: the state is this CPU's own, and its neighbour does not run.
    unsafe {
        tenant.worlds.with(|worlds| {
            worlds.general = general;
            worlds.own = first_registers(tenant.stage2.0);
            worlds.vcpu.map = machine().stage2.0;
            worlds.vcpu.fixed.save();
            worlds.more = registers_of_cpu();
            worlds.own_auxiliary = Auxiliary::zero();
            worlds.own_stage1 = Stage1::zero();
            worlds.own_fp = Fp::zero();
        });
    }
    Some(())
}

/// Returns the registers with which a neighbour with the map `map` begins. CPTR_EL2 and MDCR_EL2 must hold the vCPU's
/// values, which never change.
fn first_registers(map: u64) -> Registers {
    Registers {
        untrapped: Untrapped::zero(),
        effective: Effective {
            sctlr: SCTLR,
            cpacr: CPACR,
            ..Effective::zero()
        },
        changing: Changing {
            hcr: HCR_NEIGHBOUR | HCR_STAGE1_OFF,
            vectors: switch::vectors_of_turn(),
            counters: virtual_timer_traps(),
            interface: NO_INTERFACE,
        },
        fixed: Fixed {
            cptr: CPTR_EL2.get() | TRAP_FP | TRAP_CPACR,
            mdcr: MDCR_EL2.get() | TRAP_COUNTERS_AND_DEBUG,
        },
        map,
        errors: 0,
    }
}

/// Returns the registers in [`more`] that this CPU has.
fn registers_of_cpu() -> u64 {
    [
        (more::PMU, world::has_pmu()),
        (more::ERRORS, el1::has_ras()),
        (more::AUXILIARY, el1::has_auxiliary()),
        (more::TIMER, virtual_timer_traps() == 0),
    ]
    .iter()
    .map(|&(bit, is_there)| if is_there { bit } else { 0 })
    .sum()
}

/// Returns the bits of CNTHCTL_EL2 that trap the virtual timer of EL1, where it can trap (ID_AA64MMFR0_EL1.ECV). The
/// physical timer and counter trap because EL1PCTEN and EL1PCEN are 0.
fn virtual_timer_traps() -> u64 {
    match ID_AA64MMFR0_EL1.get() >> 60 {
        0 => 0,
        _ => TRAP_VIRTUAL_TIMER,
    }
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
    // The previous program's stage 1 may have been on, with tables of its own.
    insn::tlbi_alle1();
    insn::dsb_ish();
    insn::isb();
}
