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

/// General registers of the interrupted context.
#[repr(C, align(16))]
pub struct Frame {
    /// x0 to x30; in an IRQ x19 to x29 are not saved.
    pub x: [u64; 31],
    _align: u64,
}

const FRAME: usize = size_of::<Frame>();

core::arch::global_asm!(
    r#"
    .macro el1_save
        sub     sp, sp, #{frame}
        stp     x0, x1, [sp, #0]
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        str     x18, [sp, #144]
        str     x30, [sp, #240]
    .endm

    .macro el1_unexpected number
        .balign 128
        el1_save
        stp     x19, x20, [sp, #152]
        stp     x21, x22, [sp, #168]
        stp     x23, x24, [sp, #184]
        stp     x25, x26, [sp, #200]
        stp     x27, x28, [sp, #216]
        str     x29, [sp, #232]
        mov     x0, sp
        mov     x1, #\number
        b       {unexpected}
    .endm

    .macro el1_table irq
        el1_unexpected 0
        el1_unexpected 1
        el1_unexpected 2
        el1_unexpected 3
        .balign 128
        el1_save
        mov     x0, sp
        bl      {sync}
        b       el1_resume
        .balign 128
        \irq
        b       el1_resume
        el1_unexpected 6
        el1_unexpected 7
        el1_unexpected 8
        el1_unexpected 9
        el1_unexpected 10
        el1_unexpected 11
        el1_unexpected 12
        el1_unexpected 13
        el1_unexpected 14
        el1_unexpected 15
    .endm

    .macro el1_irq
        el1_save
        bl      {irq}
    .endm

    // Reads the clock as soon as there is a register for it.
    .macro el1_irq_traced
        stp     x0, x1, [sp, #-{frame}]
        mrs     x0, cntvct_el0
        mrs     x1, tpidr_el1
        str     x0, [x1, #{vector_at}]
        ldp     x0, x1, [sp, #-{frame}]
        el1_save
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
    ldp     x0, x1, [sp, #0]
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldr     x18, [sp, #144]
    ldr     x30, [sp, #240]
    add     sp, sp, #{frame}
    eret
    "#,
    vector_at = const offset_of!(PerCpu, vector_at),
    frame = const FRAME,
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
