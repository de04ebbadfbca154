// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exception vectors of EL2.
//!
//! Every exit of the guest passes here, so the two that matter (synchronous
//! and IRQ from a lower level) save only what a Rust function may clobber: x0
//! to x18 and x30. x19 to x29 still hold the guest's values when the handler
//! returns, as the procedure call standard makes every function keep them
//! (AAPCS64 2024Q3, 6.1.1). A handler that has to see or change one of those
//! answers [`Next::Full`]: then the stub completes the frame and calls again.
//!
//! The table exists twice, for handlers without and with tracing: see
//! [`crate::trace`].

use core::mem::offset_of;

use crate::trace;

arch::symbol_addresses! {
    /// The vectors without tracing.
    plain = el2_vectors;
    /// The vectors with tracing.
    traced = el2_vectors_traced;
}

/// General registers of the interrupted context, on the EL2 stack.
#[repr(C, align(16))]
pub struct Frame {
    /// x0 to x30; x19 to x29 are valid only in a complete frame.
    pub x: [u64; 31],
    _align: u64,
}

/// What the stub does after a handler.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Return to the guest.
    Resume = 0,
    /// Complete the frame and call the handler for the full context.
    Full = 1,
}

const FRAME: usize = size_of::<Frame>();

core::arch::global_asm!(
    r#"
    .macro save_caller
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

    .macro save_rest
        stp     x19, x20, [sp, #152]
        stp     x21, x22, [sp, #168]
        stp     x23, x24, [sp, #184]
        stp     x25, x26, [sp, #200]
        stp     x27, x28, [sp, #216]
        str     x29, [sp, #232]
    .endm

    .macro vector_unexpected number
        .balign 128
        save_caller
        save_rest
        mov     x0, sp
        mov     x1, #\number
        b       {unexpected}
    .endm

    .macro restore_caller
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
        ldp     x0, x1, [sp, #0]
        add     sp, sp, #{frame}
    .endm

    .macro restore_rest
        ldp     x19, x20, [sp, #152]
        ldp     x21, x22, [sp, #168]
        ldp     x23, x24, [sp, #184]
        ldp     x25, x26, [sp, #200]
        ldp     x27, x28, [sp, #216]
        ldr     x29, [sp, #232]
    .endm

    .macro vector_sync handler, kind
        .balign 128
        save_caller
        mov     x0, sp
        bl      \handler
        cbnz    x0, exit_full\kind
        b       exit_resume\kind
    .endm

    .macro vector_irq handler, kind
        .balign 128
        save_caller
        mov     x0, sp
        bl      \handler
        b       exit_resume\kind
    .endm

    .macro vector_table fast, irq, kind
        vector_unexpected 0
        vector_unexpected 1
        vector_unexpected 2
        vector_unexpected 3
        vector_unexpected 4
        vector_unexpected 5
        vector_unexpected 6
        vector_unexpected 7
        vector_sync \fast, \kind
        vector_irq \irq, \kind
        vector_unexpected 10
        vector_unexpected 11
        vector_unexpected 12
        vector_unexpected 13
        vector_unexpected 14
        vector_unexpected 15
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global el2_vectors
el2_vectors:
    vector_table {fast}, {irq}, _plain
    .balign 2048
    .global el2_vectors_traced
el2_vectors_traced:
    vector_table {fast_traced}, {irq_traced}, _traced

exit_full_plain:
    save_rest
    mov     x0, sp
    bl      {full}
    restore_rest
exit_resume_plain:
    restore_caller
    eret

exit_full_traced:
    save_rest
    mov     x0, sp
    bl      {full}
    restore_rest
exit_resume_traced:
    bl      {resume}
    restore_caller
    eret
    "#,
    frame = const FRAME,
    fast = sym crate::exit::fast::<trace::Off>,
    fast_traced = sym crate::exit::fast::<trace::On>,
    full = sym crate::exit::full,
    irq = sym crate::irq::exit::<trace::Off>,
    irq_traced = sym crate::irq::exit::<trace::On>,
    resume = sym trace::resume,
    unexpected = sym crate::dump::unexpected,
);

const _: () = assert!(offset_of!(Frame, x) == 0 && FRAME == 256);
