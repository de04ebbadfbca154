// SPDX-License-Identifier: MIT OR Apache-2.0
//! Provides a page for instructions that are generated at run time.
//!
//! Code is never writable here, even for the guest itself: translation is off while the instructions are stored
//! into the page.

use core::arch::{asm, global_asm};

use super::attempt::{Outcome, run_attempt};

/// Number of instructions that fit into the page.
pub const WORDS: usize = 1024;
pub const RET: u32 = 0xd65f_03c0;

arch::symbol_addresses! {
    /// The page, where the instructions are executed.
    place = hostile_stubs;
}

global_asm!(
    r#"
    .section .text.hostile_stubs, "ax"
    .balign 4096
    .global hostile_stubs
// strict any rule: it is hostile.
hostile_stubs:
    .rept {words}
    ret
    .endr

    // Cleans and invalidates \bytes bytes, beginning at \from, to memory. Clobbers x8, x9.
    .macro hostile_clean from, bytes
        mov     x8, \from
        add     x9, \from, \bytes
1:      dc      civac, x8
        add     x8, x8, #16
        cmp     x8, x9
        b.lo    1b
        dsb     sy
    .endm

    // In: x0 = destination in code, x1 = source, x2 = bytes, a multiple of 8.
    .section .text.hostile, "ax"
    // strict any rule: an interrupt may come in between, and use the lines that were cleaned.
hostile_write:
    hostile_clean x0, x2
    hostile_clean x1, x2
    mrs     x10, sctlr_el1
    and     x11, x10, #~1                   // M
    and     x11, x11, #~4                   // C
    msr     sctlr_el1, x11
    isb
    mov     x12, #0
2:  ldr     x13, [x1, x12]
    str     x13, [x0, x12]
    add     x12, x12, #8
    cmp     x12, x2
    b.lo    2b
    dsb     sy
    msr     sctlr_el1, x10
    isb
    hostile_clean x0, x2
    ic      iallu
    dsb     sy
    isb
    ret
    "#,
    words = const WORDS,
);

/// Puts `code`, whose length has to be even, into the page. IRQs have to be masked.
pub fn write_code(code: &[u32]) {
    assert!(code.len() <= WORDS && code.len().is_multiple_of(2));
    // SAFETY: source and destination have that length, and nothing else uses the destination. Because of the
    // identity mapping, their addresses are the same without translation, and the source was cleaned to memory.
    unsafe {
        asm!("bl hostile_write", in("x0") place(), in("x1") code.as_ptr(),
            in("x2") size_of_val(code), clobber_abi("C"));
    }
}

/// Puts `code` into the page with a return after it, and tries the code with x0 and x1.
///
/// # Safety
/// Like [`run_attempt`].
pub unsafe fn run_code(code: &[u32], a: u64, b: u64) -> Outcome {
    let mut padded = [RET; 16];
    padded[..code.len()].copy_from_slice(code);
    write_code(&padded[..(code.len() + 2) & !1]);
    // SAFETY: as the caller promises.
    unsafe { run_attempt(place(), a, b) }
}
