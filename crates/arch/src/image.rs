// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arm64 Image header and the self-relocation that both images start with.
//!
//! An image is a position-independent executable linked at address 0 with the
//! 64-byte header that boot loaders expect (Linux, `Documentation/arch/arm64/booting.rst`)
//! as its first bytes. The linker leaves one table of relative relocations;
//! the entry applies it before any Rust code runs, with the MMU off.

/// Emits the header and the start code of an image.
///
/// `$then` is the symbol that the start code branches to on the CPU that came
/// first, relocated, with x0 as the loader left it and x19 = load address.
/// `$held` is where every other CPU goes that the loader let in at the same
/// time. Both run without a stack. Clobbers x1 to x8.
#[macro_export]
macro_rules! image_start {
    ($then:path, $held:path) => {
        core::arch::global_asm!(
            r#"
            .section .head, "ax"
            .global _head
        _head:
            b       1f
            nop
            .quad   0                       // text_offset
            .quad   __image_end - _head     // image_size; the packer adds the payload
            .quad   0xa                     // little endian, 4 KiB pages, anywhere in RAM
            .quad   0, 0, 0
            .ascii  "ARM\x64"
            .long   0
        1:
            // The first CPU to claim the image goes on; PSCI and spin-table
            // loaders let in only one, others let in all of them.
            adrp    x1, __boot_claim
            add     x1, x1, :lo12:__boot_claim
        2:  ldaxr   w2, [x1]
            cbnz    w2, 9f
            mov     w3, #1
            stxr    w4, w3, [x1]
            cbnz    w4, 2b
            // Relocate: entries of 24 bytes, offset, info (only R_AARCH64_RELATIVE,
            // the linker script asserts no other kind), addend.
            adr     x19, _head
            adrp    x1, __rela_start
            add     x1, x1, :lo12:__rela_start
            adrp    x2, __rela_end
            add     x2, x2, :lo12:__rela_end
        3:  cmp     x1, x2
            b.hs    4f
            ldp     x3, x4, [x1], #16
            ldr     x5, [x1], #8
            add     x5, x5, x19
            str     x5, [x3, x19]
            b       3b
        4:  b       {then}
        9:  clrex
            b       {held}

            .section .data.boot_claim, "aw"
            .balign 64                      // a line of its own: it is written uncached
            .global __boot_claim
        __boot_claim:
            .long   0
            .balign 64
            "#,
            then = sym $then,
            held = sym $held,
        );
    };
}
