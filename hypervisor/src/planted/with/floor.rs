// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines vectors that do only what the architecture requires: their cost is the minimum cost of
//! an exit, for comparison with the costs of the real vectors. With `rouse.floor`, a vCPU may use
//! these vectors ([`abi::Call::Floor`]); without that argument, there is no such call.
//!
//! The vectors check nothing, so a guest that uses them can send any SGI and have any interrupt listed, which no other
//! guest can. Only the measuring program uses them, and no other program runs next to it.
//!
//! - `empty`: an HVC, and the return.
//! - `send`: a write of ICC_SGI1R_EL1 by the guest. The syndrome has to be read, the SGI sent, and ELR_EL2 moved past
//!   the instruction (DDI 0487K.a, D1.3.1.4). These steps take two registers, whose values have to be preserved.
//! - `receive`: an SGI is acknowledged, its priority is dropped, and it is deactivated (IHI 0069H,
//!   4.6.2: EOImode is 1) and listed. The vector does not look for a free list register.
//! - `wait`: a trapped WFI. The syndrome is read, ELR_EL2 moved past the instruction, WFI executed; then `receive`.
//! - `read`: a load of w1 from the distributor, which reads as zero. The syndrome and the address have to be read, and
//!   ELR_EL2 moved past the instruction; HPFAR_EL2 has the page, and FAR_EL2 the register (D24.2.64).
//! - `start`: an SMC with the arguments of CPU_ON. The target is found by its affinity, gets its entry and its
//!   context, and is then marked as turned on. The doorbell follows, after a DSB (IHI 0069H, 12.1.6). The vector checks
//!   neither that the target is off nor that the entry is in RAM; [`install`] has already counted the target.
//!
//! With a GICv2, `send`, `receive` and `wait` have other tables: sending an SGI is an abort, whose address has to be
//! read too, and a register of the GIC is memory, whose address EL2 keeps at its stack pointer.
//!
//! An exception that these vectors do not serve ends their use: the CPU then uses the plain vectors again.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{VBAR_EL2, Writeable};
use abi::Floor;

use crate::cpu::vcpu::{self, Vcpu, power};
use crate::machine::machine;
use crate::machine::vm::vm;

static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Values that `start` needs for a target: the addresses of its entry, its power state and its doorbell, and the
/// value to store to the doorbell.
type Target = [AtomicU64; 4];
/// The targets, indexed by Aff0; the other fields of their affinity are 0.
#[unsafe(no_mangle)]
static EL2_FLOOR_TARGETS: [Target; 8] = [const { [const { AtomicU64::new(0) }; 4] }; 8];

// The assembly relies on these.
const _: () = assert!(offset_of!(Vcpu, context) == offset_of!(Vcpu, entry) + 8);
const _: () = assert!(power::ON_PENDING == 2 && size_of::<Target>() == 1 << 5);

unsafe extern "C" {
    static el2_vectors_floor_empty: [u8; 0];
    static el2_vectors_floor_send: [u8; 0];
    static el2_vectors_floor_receive: [u8; 0];
    static el2_vectors_floor_wait: [u8; 0];
    static el2_vectors_floor_send_version2: [u8; 0];
    static el2_vectors_floor_receive_version2: [u8; 0];
    static el2_vectors_floor_wait_version2: [u8; 0];
    static el2_vectors_floor_read: [u8; 0];
    static el2_vectors_floor_start: [u8; 0];
}

/// Sets whether a vCPU may use the minimal vectors from now on.
pub fn allow_vectors(on: bool) {
    ALLOWED.store(on, Relaxed);
}

/// The vectors that were asked for do not exist.
pub struct NoFloor;

/// Makes this CPU use the vectors `which` as soon as it returns to the guest (a context synchronization event: DDI
/// 0487K.a, D1.4.1); `None` if the vCPU may not use them.
#[inline(never)]
pub fn enter_floor(which: u64) -> Option<Result<(), NoFloor>> {
    ALLOWED.load(Relaxed).then(|| install(which).ok_or(NoFloor))
}

fn install(which: u64) -> Option<()> {
    let is_version2 = machine().platform.gic.version2.is_some();
    let floor = Floor::ALL.get(usize::try_from(which).ok()?)?;
    let vectors = match (floor, is_version2) {
        (Floor::Empty, _) => &raw const el2_vectors_floor_empty,
        (Floor::Send, false) => &raw const el2_vectors_floor_send,
        (Floor::Send, true) => &raw const el2_vectors_floor_send_version2,
        (Floor::Receive, false) => &raw const el2_vectors_floor_receive,
        (Floor::Receive, true) => &raw const el2_vectors_floor_receive_version2,
        (Floor::Wait, false) => &raw const el2_vectors_floor_wait,
        (Floor::Wait, true) => &raw const el2_vectors_floor_wait_version2,
        (Floor::Read, _) => &raw const el2_vectors_floor_read,
        (Floor::Start, _) => {
            prepare_targets();
            &raw const el2_vectors_floor_start
        }
    };
    VBAR_EL2.set(vectors as u64);
    Some(())
}

/// Fills the table of targets, and counts the vCPU that is about to be turned on.
fn prepare_targets() {
    for cpu in vm().cpus {
        let Some(target) = EL2_FLOOR_TARGETS.get(cpu.mpidr as usize) else {
            continue;
        };
        let vcpu = &cpu.vcpu;
        let (doorbell, value) = cpu.doorbell.store();
        let (entry, power) = (vcpu.entry.as_ptr() as u64, vcpu.power.as_ptr() as u64);
        for (place, value) in target.iter().zip([entry, power, doorbell, value.into()]) {
            place.store(value, Relaxed);
        }
    }
    vcpu::count_as_on();
}

/// Defines the tables in assembly, as part of the block of [`crate::exits::vectors`], whose macros they use.
macro_rules! vectors {
    () => {
        r#"
    // Goes back to the plain vectors, as if the exception had been taken to them.
    .macro floor_ends offset
        .balign 128
        stp     x0, x1, [sp, #-16]!
        adrp    x0, el2_vectors
        add     x0, x0, :lo12:el2_vectors
        msr     vbar_el2, x0
        ldp     x0, x1, [sp], #16
        b       el2_vectors + \offset
    .endm

    .macro floor_take
        mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        orr     x1, x0, #1 << 62                // pending
        orr     x1, x1, #1 << 60                // group 1
        msr     S3_4_C12_C12_0, x1              // ICH_LR0_EL2
        msr     S3_0_C12_C12_1, x0              // ICC_EOIR1_EL1
        msr     S3_0_C12_C11_1, x0              // ICC_DIR_EL1
        ldp     x0, x1, [sp], #16
        eret
    .endm

    .macro floor_take_version2
        ldr     x1, [sp, #16 + {version2_interface}]
        ldr     w0, [x1, #0xc]                  // GICC_IAR
        str     w0, [x1, #0x10]                 // GICC_EOIR
        str     w0, [x1, #0x1000]               // GICC_DIR
        ldr     x1, [sp, #16 + {version2_control}]
        orr     w0, w0, #1 << 28                // pending
        str     w0, [x1, #0x100]                // GICH_LR0
        ldp     x0, x1, [sp], #16
        eret
    .endm

    .balign 2048
    .global el2_vectors_floor_empty
el2_vectors_floor_empty:
    vectors_before
    .balign 128
    eret
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_send
el2_vectors_floor_send:
    vectors_before
    .balign 128
    stp     x0, x2, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x2, elr_el2
    add     x2, x2, #4
    msr     S3_0_C12_C11_5, x1              // ICC_SGI1R_EL1, from x1 as the guest does
    msr     elr_el2, x2
    ldp     x0, x2, [sp], #16
    eret
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_receive
el2_vectors_floor_receive:
    vectors_before
    floor_ends 0x400
    .balign 128
    stp     x0, x1, [sp, #-16]!
    floor_take
    vectors_after

    .balign 2048
    .global el2_vectors_floor_wait
el2_vectors_floor_wait:
    vectors_before
    .balign 128
    stp     x0, x1, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x0, elr_el2
    add     x0, x0, #4
    msr     elr_el2, x0
    wfi
    floor_take
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_send_version2
el2_vectors_floor_send_version2:
    vectors_before
    .balign 128
    stp     x0, x2, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x0, hpfar_el2
    mrs     x0, far_el2
    mrs     x2, elr_el2
    add     x2, x2, #4
    ldr     x0, [sp, #16 + {version2_distributor}]
    str     w5, [x0, #0xf00]                // GICD_SGIR, from w5 as the guest does
    msr     elr_el2, x2
    ldp     x0, x2, [sp], #16
    eret
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_receive_version2
el2_vectors_floor_receive_version2:
    vectors_before
    floor_ends 0x400
    .balign 128
    stp     x0, x1, [sp, #-16]!
    floor_take_version2
    vectors_after

    .balign 2048
    .global el2_vectors_floor_wait_version2
el2_vectors_floor_wait_version2:
    vectors_before
    .balign 128
    stp     x0, x1, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x0, elr_el2
    add     x0, x0, #4
    msr     elr_el2, x0
    wfi
    floor_take_version2
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_read
el2_vectors_floor_read:
    vectors_before
    .balign 128
    str     x0, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x0, hpfar_el2
    mrs     x0, far_el2
    mrs     x0, elr_el2
    add     x0, x0, #4
    msr     elr_el2, x0
    ldr     x0, [sp], #16
    mov     x1, #0
    eret
    floor_ends 0x480
    vectors_after

    .balign 2048
    .global el2_vectors_floor_start
el2_vectors_floor_start:
    vectors_before
    .balign 128
    stp     x1, x4, [sp, #-16]!
    mrs     x0, esr_el2
    mrs     x0, elr_el2
    add     x0, x0, #4
    msr     elr_el2, x0
    adrp    x0, EL2_FLOOR_TARGETS
    add     x0, x0, :lo12:EL2_FLOOR_TARGETS
    add     x0, x0, x1, lsl #5
    ldp     x1, x4, [x0]
    stp     x2, x3, [x1]                    // entry and context
    mov     w1, #2                          // ON_PENDING
    stlr    w1, [x4]
    ldp     x1, x4, [x0, #16]
    dsb     ishst
    str     w4, [x1]                        // the doorbell
    ldp     x1, x4, [sp], #16
    mov     x0, #0
    eret
    floor_ends 0x480
    vectors_after
    "#
    };
}
pub(crate) use vectors;
