// SPDX-License-Identifier: MIT OR Apache-2.0
//! The general registers of an interrupted context, and the instructions that
//! save and restore them, for the vectors of both exception levels.

use core::mem::offset_of;

/// General registers of the interrupted context, on the stack of the handler.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Frame {
    /// x0 to x30; x19 to x29 are valid only in a complete frame.
    pub x: [u64; 31],
    _align: u64,
}

// The assembler macros of `frame_macros` assume this layout.
const _: () = assert!(offset_of!(Frame, x) == 0 && size_of::<Frame>() == 256);

/// Assembler macros for a [`Frame`] at the stack pointer: `save_caller` creates it and saves the
/// registers that a function may clobber (x0 to x18 and x30; `save_caller_rest` saves these except
/// x0 to x3), and `save_rest` completes it. `restore_rest` and `restore_caller` undo the two.
#[macro_export]
macro_rules! frame_macros {
    () => {
        r#"
    .macro save_caller
        stp     x0, x1, [sp, #-256]!
        stp     x2, x3, [sp, #16]
        save_caller_rest
    .endm

    .macro save_caller_rest
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
        ldp     x0, x1, [sp], #256
    .endm

    .macro restore_rest
        ldp     x19, x20, [sp, #152]
        ldp     x21, x22, [sp, #168]
        ldp     x23, x24, [sp, #184]
        ldp     x25, x26, [sp, #200]
        ldp     x27, x28, [sp, #216]
        ldr     x29, [sp, #232]
    .endm

    // Unexpected exception: the handler gets the frame and the number of the vector.
    .macro unexpected handler, number
        save_caller
        save_rest
        mov     x0, sp
        mov     x1, #\number
        b       \handler
    .endm

    .macro vector_unexpected handler, number
        .balign 128
        unexpected \handler, \number
    .endm
        "#
    };
}
