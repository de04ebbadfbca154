// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exception vectors of EL1. Only IRQ is expected: whatever else comes is
//! an error of this kernel and ends it with the registers shown, unless code
//! asked for it by [`catching`].
//!
//! The table exists twice: in the second one an IRQ notes the time first.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use aarch64_cpu::registers::{ELR_EL1, ESR_EL1, FAR_EL1, Readable, VBAR_EL1, Writeable};
pub use arch::frame::Frame;
use arch::insn;

use crate::percpu::PerCpu;

arch::symbol_addresses! {
    /// The vectors.
    plain = el1_vectors;
    /// The vectors that note the time of an IRQ.
    traced = el1_vectors_traced;
}

/// Whether this CPU notes the time of an IRQ.
pub fn trace(on: bool) {
    VBAR_EL1.set(if on { traced() } else { plain() });
    insn::isb();
}

core::arch::global_asm!(
    arch::frame_macros!(),
    r#"
    .macro el1_table irq
        vector_unexpected {unexpected}, 0
        vector_unexpected {unexpected}, 1
        vector_unexpected {unexpected}, 2
        vector_unexpected {unexpected}, 3
        .balign 128
        save_caller
        save_rest
        mov     x0, sp
        bl      {sync}
        b       el1_resume
        .balign 128
        \irq
        b       el1_resume
        vector_unexpected {unexpected}, 6
        vector_unexpected {unexpected}, 7
        vector_unexpected {unexpected}, 8
        vector_unexpected {unexpected}, 9
        vector_unexpected {unexpected}, 10
        vector_unexpected {unexpected}, 11
        vector_unexpected {unexpected}, 12
        vector_unexpected {unexpected}, 13
        vector_unexpected {unexpected}, 14
        vector_unexpected {unexpected}, 15
    .endm

    .macro el1_irq
        save_caller
        bl      {irq}
    .endm

    // Reads the clock as soon as there is a register for it.
    .macro el1_irq_traced
        stp     x0, x1, [sp, #-256]
        mrs     x0, cntvct_el0
        mrs     x1, tpidr_el1
        str     x0, [x1, #{vector_at}]
        ldp     x0, x1, [sp, #-256]
        save_caller
        bl      {irq}
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global el1_vectors
el1_vectors:
    el1_table el1_irq
    .balign 2048
    .global el1_vectors_traced
el1_vectors_traced:
    el1_table el1_irq_traced

el1_resume:
    restore_caller
    eret
    "#,
    vector_at = const offset_of!(PerCpu, vector_at),
    irq = sym crate::interrupts::irq,
    sync = sym synchronous,
    unexpected = sym crate::output::unexpected,
);

/// A synchronous exception that was caught.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// ESR_EL1.
    pub esr: u64,
    /// FAR_EL1.
    pub far: u64,
}

/// Whether a synchronous exception is wanted, and what came.
static WANTED: AtomicU64 = AtomicU64::new(0);
static ESR: AtomicU64 = AtomicU64::new(0);
static FAR: AtomicU64 = AtomicU64::new(0);
/// Values of [`WANTED`].
const NO: u64 = 0;
const YES: u64 = 1;
const CAME: u64 = 2;

/// Runs `code`, one instruction of which may fault: it is stepped over and the
/// exception answered. One CPU at a time.
pub fn catching(code: impl FnOnce()) -> Option<Exception> {
    WANTED.store(YES, Release);
    code();
    let came = WANTED.swap(NO, Acquire) == CAME;
    came.then(|| Exception {
        esr: ESR.load(Relaxed),
        far: FAR.load(Relaxed),
    })
}

extern "C" fn synchronous(frame: &Frame) {
    if WANTED.load(Acquire) != YES {
        crate::output::unexpected(frame, 4);
    }
    ESR.store(ESR_EL1.get(), Relaxed);
    FAR.store(FAR_EL1.get(), Relaxed);
    WANTED.store(CAME, Release);
    ELR_EL1.set(ELR_EL1.get() + 4);
}
