// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the first instructions, which run at EL1 with the MMU off and no stack.

use platform::{Platform, Room};

unsafe extern "C" {
    fn _kernel_primary();
    fn _kernel_held();
}

arch::image_start!(_kernel_primary, _kernel_held);

arch::symbol_addresses! {
    /// Entry of each other CPU, with its number as the context id of CPU_ON.
    secondary_entry = kernel_secondary;
}

/// Bytes of each CPU's stack.
const STACK: usize = 0x4_0000;

// A description is read twice on the same stack, and once more after an exception; it is moved while it is read.
const _: () = assert!(STACK >= 6 * (size_of::<Room>() + size_of::<Platform<'_>>()));

core::arch::global_asm!(
    r#"
    .section .text.boot, "ax"
    // An exception ends the machine. Clobbers x1.
    .macro take_exceptions
        adrp    x1, kernel_vectors
        add     x1, x1, :lo12:kernel_vectors
        msr     vbar_el1, x1
        isb
    .endm

    // In: x0 = device tree.
    .global _kernel_primary
_kernel_primary:
    take_exceptions
    adrp    x1, kernel_stack + {stack_size}
    add     sp, x1, :lo12:kernel_stack + {stack_size}
    bl      kernel_start

    // In: x0 = number of the CPU. The CPUs' stacks are contiguous.
    .global kernel_secondary
kernel_secondary:
    take_exceptions
    adrp    x1, kernel_stack + 2 * {stack_size}
    add     sp, x1, :lo12:kernel_stack + 2 * {stack_size}
    bl      kernel_start_secondary

    .global _kernel_held
_kernel_held:
    wfe
    b       _kernel_held

    .balign 2048
kernel_vectors:
    .rept   16
    .balign 128
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    b       kernel_failed
    .endr

    .section .bss.kernel_stack, "aw", @nobits
    .balign 16
kernel_stack:
    .space  2 * {stack_size}
    "#,
    stack_size = const STACK,
);
