// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of an image, and the self-relocation with which it starts.
//!
//! An image is a position-independent executable linked at address 0. Its first page contains
//! headers. The 64 bytes that boot loaders expect of an arm64 Image (Linux,
//! `Documentation/arch/arm64/booting.rst`) begin with an instruction whose first two bytes read
//! `MZ`, and end with the offset of a PE header if the image is also a UEFI application. So firmware
//! and boot loaders each find the header that they expect in the same file.
//!
//! The linker leaves one table of relative relocations; each of the two entry points applies it before
//! any Rust code runs.

/// SCTLR_EL1 with the MMU off: its RES1 bits (DDI 0487K.a, D23.2.139).
pub const SCTLR_EL1_RES1: u64 = 0x30d0_0800;

/// Number of CPUs that the start code distinguishes if a loader enters it on all CPUs: 32 clusters
/// of 16, by Aff1 and Aff0 of MPIDR_EL1. A loader that enters it on one CPU may choose any CPU.
#[doc(hidden)]
pub const CLAIMANTS: usize = 512;

/// Emits the headers and the start code of an image.
///
/// The start code branches to the symbol `$then` on the first CPU, after relocation, with x0 as the
/// loader left it. Every other CPU that the loader starts at the same time goes to `$held`. Both
/// run without a stack. Clobbers x1 to x8 and x13.
///
/// `_image_relocate` relocates the image and leaves x0 and the stack unchanged; clobbers x1 to x5
/// and x8.
#[macro_export]
macro_rules! image_start {
    ($then:path, $held:path) => {
        $crate::image_start!(@ $then, $held, "", 0);
    };
    // `$efi` is the entry of the UEFI application.
    ($then:path, $held:path, efi $efi:path) => {
        $crate::image_start!(@ $then, $held, $crate::pe_header!(), 64, efi = sym $efi);
    };
    (@ $then:path, $held:path, $pe:expr, $pe_offset:literal $(, $($efi:tt)*)?) => {
        core::arch::global_asm!(
            r#"
            .section .head, "ax"
            .global _head
        _head:
            add     x13, x18, #22           // reads "MZ"; does nothing of use
            b       _image_start
            .quad   0                       // text_offset
            .quad   __image_end - _head     // image_size; the packer adds the payload
            .quad   0xa                     // little endian, 4 KiB pages, anywhere in RAM
            .quad   0, 0, 0
            .ascii  "ARM\x64"
            .long   {pe_offset}
            "#,
            $pe,
            r#"
            .section .text.boot, "ax"
        _image_start:
            "#,
            $crate::plain_data!(),
            r#"
            // PSCI and spin-table loaders start only one CPU here; other loaders start all CPUs, and
            // only one may continue. With the MMU off, exclusives need not work (DDI 0487K.a, B2.12.1:
            // data accesses are to Device memory), so loads and stores choose that CPU: Lamport's fast
            // mutual exclusion (ACM TOCS 5(1), 1987, algorithm 2), which the winner never leaves.
            mrs     x1, mpidr_el1           // not 0: bit 31 is RES1
            adrp    x2, __boot_claim        // the CPU that arrived last, the last that passed, the winner
            add     x2, x2, :lo12:__boot_claim
            add     x3, x2, #64             // for each CPU: whether it is undecided
            and     x4, x1, #15
            ubfx    x5, x1, #8, #5
            add     x4, x4, x5, lsl #4
            mov     w5, #1
            strb    w5, [x3, x4]
            dmb     sy
            str     x1, [x2]
            dmb     sy
            ldr     x6, [x2, #8]
            cbnz    x6, 8f
            str     x1, [x2, #8]
            dmb     sy
            ldr     x6, [x2]
            cmp     x6, x1
            b.eq    7f
            // Several CPUs arrived at once. Once no CPU is undecided, the winner is the last to pass,
            // unless one CPU found itself alone.
            strb    wzr, [x3, x4]
            dmb     sy
            mov     x5, #0
        2:  ldrb    w6, [x3, x5]
            cbz     w6, 3f
            yield
            ldr     x6, [x2, #16]
            cbnz    x6, 9f
            b       2b
        3:  add     x5, x5, #1
            cmp     x5, #{claimants}
            b.lo    2b
            dmb     sy
            ldr     x6, [x2, #8]
            cmp     x6, x1
            b.ne    9f
        7:  str     x1, [x2, #16]
            bl      _image_relocate
            b       {then}
        8:  strb    wzr, [x3, x4]
        9:  b       {held}

            "#,
            $crate::relocation!(),
            r#"
            .section .data.boot_claim, "aw"
            .balign 64                      // lines of their own: they are written uncached
            .global __boot_claim
        __boot_claim:
            .space  64 + {claimants}
            "#,
            then = sym $then,
            held = sym $held,
            claimants = const $crate::image::CLAIMANTS,
            pe_offset = const $pe_offset,
            $($($efi)*)?
        );
    };
}

/// Prepares this PE for data accesses at the start of an image, at EL2 or EL1, before the first
/// access. Sets only the RES1 bits of SCTLR_ELx (DDI 0487K.a, D23.2.139 and D23.2.140; for EL2,
/// with E2H=0). So MMU, caches and alignment checks are off, and data is little-endian: EE is
/// UNKNOWN after a reset or chosen by the machine, and a loader may have run big-endian. The code
/// loads no literal, because that would be a data access; clobbers x1.
#[macro_export]
macro_rules! plain_data {
    () => {
        r#"
            mrs     x1, CurrentEL
            cmp     x1, #8
            b.ne    1f
            mov     x1, #0x0830
            movk    x1, #0x30c5, lsl #16
            msr     sctlr_el2, x1
            b       2f
        1:  mov     x1, #0x0800
            movk    x1, #0x30d0, lsl #16
            msr     sctlr_el1, x1
        2:  isb
        "#
    };
}

/// The code that relocates an image, `_image_relocate`, as assembler text.
#[macro_export]
macro_rules! relocation {
    () => {
        r#"
            // Entries of 24 bytes: offset, info (only R_AARCH64_RELATIVE, the
            // linker script asserts no other kind), addend.
            .global _image_relocate
        _image_relocate:
            adrp    x8, _head
            add     x8, x8, :lo12:_head
            adrp    x1, __rela_start
            add     x1, x1, :lo12:__rela_start
            adrp    x2, __rela_end
            add     x2, x2, :lo12:__rela_end
        3:  cmp     x1, x2
            b.hs    4f
            ldp     x3, x4, [x1], #16
            ldr     x5, [x1], #8
            add     x5, x5, x8
            str     x5, [x3, x8]
            b       3b
        4:  ret
        "#
    };
}

/// The PE header of an arm64 UEFI application (Microsoft, "PE Format"; UEFI
/// Specification 2.10, 2.1.1), in the section `.head`, as assembler text.
///
/// File and memory have the same layout: one section for code and one for everything else, so that
/// firmware that maps code read-only can load the file. The packer appends the payload to the
/// second section. There are no base relocations, because the image relocates itself.
#[macro_export]
macro_rules! pe_header {
    () => {
        r#"
            .ascii  "PE\0\0"
            .short  0xaa64                  // arm64
            .short  2                       // sections
            .long   0, 0, 0                 // no time, no symbols
            .short  160                     // bytes of the optional header
            .short  0x206                   // executable, no line numbers, no debug information
            .short  0x20b                   // PE32+
            .short  0
            .long   __text_end - _head - 0x1000
            .long   0                       // initialised data; the packer fills it in
            .long   0
            .long   {efi} - _head
            .long   0x1000                  // base of code
            .quad   0                       // image base: any
            .long   0x1000, 0x1000          // alignment in memory and in the file
            .short  0, 0, 0, 0, 0, 0
            .long   0
            .long   0                       // size of image; the packer fills it in
            .long   0x1000                  // size of headers
            .long   0
            .short  10                      // UEFI application
            .short  0x100                   // works where data can't be executed
            .quad   0, 0, 0, 0
            .long   0
            .long   6                       // data directories, all empty
            .quad   0, 0, 0, 0, 0, 0

            .ascii  ".text\0\0\0"
            .long   __text_end - _head - 0x1000, 0x1000
            .long   __text_end - _head - 0x1000, 0x1000
            .long   0, 0, 0
            .long   0x60000020              // code, executed and read

            .ascii  ".data\0\0\0"          // the packer fills in both sizes
            .long   0, __text_end - _head
            .long   0, __text_end - _head
            .long   0, 0, 0
            .long   0xc0000040              // data, read and written
        "#
    };
}
