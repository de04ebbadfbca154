// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the exception vectors of EL1. Only IRQ is expected: any other exception is a bug in this
//! kernel and ends the machine with a dump of the registers, unless code expects it through [`catch_exception`].
//!
//! There are two tables, and two more for a GICv2: in the second table, the IRQ vector first logs the time. In
//! the first table, the interrupt that wakes a CPU is handled in assembly, because its handling is part
//! of every result: the work of [`crate::dispatch`] for RESCHED needs two registers, and a Rust function
//! may change nineteen. Any other interrupt is passed on to [`crate::dispatch`], with its number.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use aarch64_cpu::registers::{ELR_EL1, ESR_EL1, FAR_EL1, Readable, VBAR_EL1, Writeable};
use arch::frame::Frame;
use arch::insn;

use crate::interrupts;
use crate::machine::platform;
use crate::percpu::PerCpu;
use crate::tally::{Event, Tally};

// The assembly relies on this.
const _: () = assert!(interrupts::RESCHED == 0);

arch::symbol_addresses! {
    /// The vectors.
    plain = el1_vectors;
    /// The vectors that log the time of an IRQ.
    traced = el1_vectors_traced;
    /// The vectors with a GICv2.
    plain_version2 = el1_vectors_version2;
    /// The vectors that log the time of an IRQ, with a GICv2.
    traced_version2 = el1_vectors_version2_traced;
}

/// Sets whether this CPU logs the time of an IRQ.
pub fn set_tracing(on: bool) {
    let is_version2 = platform().gic.version2.is_some();
    VBAR_EL1.set(match (is_version2, on) {
        (false, false) => plain(),
        (false, true) => traced(),
        (true, false) => plain_version2(),
        (true, true) => traced_version2(),
    });
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
        b       el1_synchronous
        .balign 128
        \irq
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
        stp     x0, x1, [sp, #-256]!
        mrs     x0, S3_0_C12_C12_0              // ICC_IAR1_EL1
        cbnz    w0, el1_irq_rest                // INTID 0: RESCHED
        mrs     x0, tpidr_el1
        ldr     x1, [x0, #{taken}]
        add     x1, x1, #1
        str     x1, [x0, #{taken}]
    el1_irq_flag:                               // two instructions: crate `critical`
        mov     w1, #1
        strb    w1, [x0, #{interrupted}]
        msr     S3_0_C12_C12_1, xzr             // ICC_EOIR1_EL1
        sevl                                    // see el1_acknowledged
        ldp     x0, x1, [sp], #256
        eret
    .endm

    // Acknowledges and ends with a GICv2's registers; the INTID of an SGI is read together with its sender.
    .macro el1_irq_version2
        stp     x0, x1, [sp, #-256]!
        stp     x2, x3, [sp, #16]
        adrp    x1, {version2}
        add     x1, x1, :lo12:{version2}
        ldr     x1, [x1, #{interface}]
    el1_irq_iar_version2:                       // crate `critical`
        ldr     w0, [x1, #0xc]                  // GICC_IAR
        dmb     ishld                           // a sender's stores are seen from here on
        tst     w0, #0x3ff
        b.ne    el1_irq_rest_version2           // INTID 0: RESCHED
        mrs     x2, tpidr_el1
        ldr     x3, [x2, #{taken}]
        add     x3, x3, #1
        str     x3, [x2, #{taken}]
    el1_irq_flag_version2:                      // two instructions: crate `critical`
        mov     w3, #1
        strb    w3, [x2, #{interrupted}]
        str     w0, [x1, #0x10]                 // GICC_EOIR
        sevl                                    // see el1_acknowledged
        ldp     x2, x3, [sp, #16]
        ldp     x0, x1, [sp], #256
        eret
    .endm

    // Reads the clock as soon as a register is free.
    .macro el1_irq_traced handler
        stp     x0, x1, [sp, #-256]
        mrs     x0, cntvct_el0
        mrs     x1, tpidr_el1
        str     x0, [x1, #{vector_at}]
        ldp     x0, x1, [sp, #-256]
        save_caller
        bl      \handler
        b       el1_resume
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global el1_vectors
el1_vectors:
    el1_table el1_irq
    .balign 2048
    .global el1_vectors_traced
el1_vectors_traced:
    el1_table "el1_irq_traced el1_interrupt"
    .balign 2048
    .global el1_vectors_version2
el1_vectors_version2:
    el1_table el1_irq_version2
    .balign 2048
    .global el1_vectors_version2_traced
el1_vectors_version2_traced:
    el1_table "el1_irq_traced el1_interrupt_version2"

    // Vectors while EL1 is prepared at EL2: they step over an access to a register that firmware
    // keeps.
    .balign 2048
    .global el2_vectors
el2_vectors:
    .rept   16
    .balign 128
    b       el2_exception
    .endr
el2_exception:
        save_caller
        mrs     x0, esr_el2
        lsr     x0, x0, #26
        cbnz    x0, 1f
        bl      {left_alone}
        cbnz    w0, el1_resume
1:      wfe
        b       1b

    // The page below the first CPU's stack is not mapped: an access to it is an overflow, which
    // is reported on the page below that one. EL0 does not use TPIDR_EL0 and TPIDRRO_EL0.
el1_synchronous:
        msr     tpidr_el0, x0
        msr     tpidrro_el0, x1
        mrs     x0, far_el1
        adrp    x1, el1_boot_guard
        sub     x0, x0, x1
        lsr     x0, x0, #12
        cbnz    x0, 1f
        mov     sp, x1
        mrs     x1, tpidrro_el0
        mrs     x0, tpidr_el0
        unexpected {unexpected}, 4
1:      mrs     x1, tpidrro_el0
        mrs     x0, tpidr_el0
        save_caller
        save_rest
        mov     x0, sp
        bl      {sync}
        b       el1_resume

el1_irq_rest_version2:
        save_caller_rest
        bl      el1_acknowledged_version2
        b       el1_resume
el1_irq_rest:
        stp     x2, x3, [sp, #16]
        save_caller_rest
        bl      el1_acknowledged
el1_resume:
    restore_caller
    eret
    "#,
    version2 = sym arch::gicv2::REGISTERS,
    interface = const offset_of!(arch::gicv2::Registers, interface),
    vector_at = const offset_of!(PerCpu, vector_at),
    taken = const offset_of!(PerCpu, tally) + Tally::offset(Event::Taken),
    interrupted = const offset_of!(PerCpu, interrupted),
    left_alone = sym crate::from_el2::is_stepped_over,
    sync = sym synchronous,
    unexpected = sym crate::failing::unexpected,
);

/// A synchronous exception that [`catch_exception`] caught.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// ESR_EL1.
    pub esr: u64,
    /// FAR_EL1.
    pub far: u64,
}

/// Whether a synchronous exception is expected, or the exception that was caught.
static WANTED: AtomicU64 = AtomicU64::new(0);
static ESR: AtomicU64 = AtomicU64::new(0);
static FAR: AtomicU64 = AtomicU64::new(0);
/// Values of [`WANTED`].
const NO: u64 = 0;
const YES: u64 = 1;
const CAME: u64 = 2;

/// Runs `code`. One instruction in `code` may fault: the handler steps over it, and this returns
/// the exception. Only one CPU at a time may run such code.
pub fn catch_exception(code: impl FnOnce()) -> Option<Exception> {
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
        crate::failing::unexpected(frame, 4);
    }
    ESR.store(ESR_EL1.get(), Relaxed);
    FAR.store(FAR_EL1.get(), Relaxed);
    WANTED.store(CAME, Release);
    ELR_EL1.set(ELR_EL1.get() + 4);
}
