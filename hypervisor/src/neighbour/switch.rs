// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches to the neighbour and back in one call: [`run_neighbour`] returns when the neighbour
//! takes an exception to EL2.
//!
//! The caller of that function changes the registers of EL2 and EL1. This module switches the general registers, which
//! only assembly can change: it loads the neighbour's registers from its [`General`], where the vectors for a running
//! neighbour store them again. Of the caller's registers, the assembly saves only those that inline assembly must not
//! change. The caller saves the others, so each is saved once.

use core::mem::offset_of;

use crate::cpu::tenant::General;

/// The cause that ended the neighbour's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Back {
    /// An interrupt is pending.
    Interrupt = 0,
    /// The neighbour trapped.
    Trapped = 1,
}

unsafe extern "C" {
    /// Runs the neighbour whose [`General`] is in x0. Preserves only x19, x29, x30 and SP.
    fn el2_to_neighbour();
}

arch::symbol_addresses! {
    /// The vectors while a neighbour runs, in `exits::vectors`.
    vectors = el2_vectors_neighbour;
}

core::arch::global_asm!(
    r#"
    .section .text.neighbour, "ax"
    .global el2_to_neighbour
el2_to_neighbour:
    stp     x29, x30, [sp, #-32]!
    stp     x19, x0, [sp, #16]
    ldp     x1, x2, [x0, #{pc}]
    msr     elr_el2, x1
    msr     spsr_el2, x2
    ldp     x2, x3, [x0, #16]
    ldp     x4, x5, [x0, #32]
    ldp     x6, x7, [x0, #48]
    ldp     x8, x9, [x0, #64]
    ldp     x10, x11, [x0, #80]
    ldp     x12, x13, [x0, #96]
    ldp     x14, x15, [x0, #112]
    ldp     x16, x17, [x0, #128]
    ldp     x18, x19, [x0, #144]
    ldp     x20, x21, [x0, #160]
    ldp     x22, x23, [x0, #176]
    ldp     x24, x25, [x0, #192]
    ldp     x26, x27, [x0, #208]
    ldp     x28, x29, [x0, #224]
    ldr     x30, [x0, #240]
    ldp     x0, x1, [x0]
    eret

    // Reached from the vectors. The stack holds the neighbour's x0 and x1, and above them the
    // registers that `el2_to_neighbour` saved; x1 is the cause that ended the turn.
    .global el2_from_neighbour
el2_from_neighbour:
    ldr     x0, [sp, #16 + 24]
    stp     x2, x3, [x0, #16]
    stp     x4, x5, [x0, #32]
    stp     x6, x7, [x0, #48]
    stp     x8, x9, [x0, #64]
    stp     x10, x11, [x0, #80]
    stp     x12, x13, [x0, #96]
    stp     x14, x15, [x0, #112]
    stp     x16, x17, [x0, #128]
    stp     x18, x19, [x0, #144]
    stp     x20, x21, [x0, #160]
    stp     x22, x23, [x0, #176]
    stp     x24, x25, [x0, #192]
    stp     x26, x27, [x0, #208]
    stp     x28, x29, [x0, #224]
    str     x30, [x0, #240]
    ldp     x2, x3, [sp], #16
    stp     x2, x3, [x0]
    mrs     x2, elr_el2
    mrs     x3, spsr_el2
    stp     x2, x3, [x0, #{pc}]
    mov     x0, x1
    ldr     x19, [sp, #16]
    ldp     x29, x30, [sp], #32
    ret
    "#,
    pc = const offset_of!(General, pc),
);

const _: () = assert!(offset_of!(General, pstate) == offset_of!(General, pc) + 8);
const _: () = assert!(offset_of!(General, x) == 0);

/// Returns the value of VBAR_EL2 with which an exception of the neighbour returns to the caller of [`run_neighbour`].
pub fn vectors_of_turn() -> u64 {
    vectors()
}

/// Runs the neighbour until it takes an exception.
///
/// # Safety
/// The EL1 registers, the map and the traps of this CPU must be the neighbour's, and `general` must describe a state at
/// EL1.
#[inline(always)]
pub unsafe fn run_neighbour(general: *mut General) -> Back {
    let back: u64;
    // SAFETY: the caller promises that what runs until the next exception is the neighbour. `el2_to_neighbour` returns
    // with this stack pointer, x19 and x29; every other general register is an output here. No compiled code of this
    // image uses the floating-point registers.
    unsafe {
        core::arch::asm!(
            "bl {run}",
            run = sym el2_to_neighbour,
            inout("x0") general => back,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _,
            clobber_abi("C"),
        );
    }
    if back == Back::Interrupt as u64 {
        Back::Interrupt
    } else {
        Back::Trapped
    }
}
