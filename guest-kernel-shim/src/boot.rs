// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the first instructions at EL1, which run with the MMU off and no stack.

use core::mem::offset_of;

use arch::hold::Release;
use pages::Regime;

use crate::from_el2;
use crate::percpu::PerCpu;

unsafe extern "C" {
    fn _el1_primary();
    fn _el1_held();
}

/// Releases held CPUs, and passes each its [`PerCpu`].
pub static EL1_RELEASE: Release = Release::new();

arch::image_start!(_el1_primary, _el1_held);
arch::held_entry!(
    // strict caches-agree: the value read is stale until the whole line is cleaned and read again.
    _el1_held: EL1_RELEASE => "el1_secondary"
);

arch::symbol_addresses! {
    /// Entry of the other CPUs.
    secondary_entry = el1_secondary;
}

/// Returns the address at which CPUs enter the image if a spin table releases them; they wait there.
pub fn held_entry() -> u64 {
    _el1_held as *const () as u64
}

core::arch::global_asm!(
    r#"
    .macro el1_plain
        msr     daifset, #15
    "#,
    arch::plain_data!(),
    r#"
    .endm

    // Puts EL1 into a known state, with the stack that ends at x9. At EL2, where a machine without
    // a hypervisor starts the image, drops to EL1 first. Keeps x0 and clobbers the other registers.
    .macro el1_reset
        mrs     x1, CurrentEL
        cmp     x1, #8
        b.ne    3f
        msr     spsel, #1
        mov     sp, x9
        mov     x19, x0
        mov     x20, x9
        ldr     x1, ={hcr}
        msr     hcr_el2, x1
        adrp    x1, el2_vectors
        add     x1, x1, :lo12:el2_vectors
        msr     vbar_el2, x1
        isb
        bl      el2_hand_down
        mov     x0, x19
        mov     x9, x20
        mov     x1, #0x3c5                      // EL1h, masked
        msr     spsr_el2, x1
        adr     x1, 3f
        msr     elr_el2, x1
        isb
        eret
    3:  msr     spsel, #1
        mov     sp, x9
        adrp    x1, el1_vectors
        add     x1, x1, :lo12:el1_vectors
        msr     vbar_el1, x1
        msr     cntkctl_el1, xzr                // no event stream, nothing for EL0
        msr     mdscr_el1, xzr                  // no debug exceptions
        isb
    .endm

    .section .text.boot, "ax"
    // In: x0 = device tree.
    .global _el1_primary
_el1_primary:
    el1_plain
    adrp    x9, el1_boot_stack + {stack_size}
    add     x9, x9, :lo12:el1_boot_stack + {stack_size}
    el1_reset
    bl      el1_start
park:
    wfe
    b       park

    // In: x0 = PerCpu, as the context id of CPU_ON.
    .global el1_secondary
el1_secondary:
    el1_plain
    ldr     x9, [x0, #{stack_top}]
    el1_reset
    adrp    x1, EL1_REGIME
    add     x1, x1, :lo12:EL1_REGIME
    ldp     x2, x3, [x1, #{regime_ttbr}]        // ttbr, tcr
    ldp     x4, x5, [x1, #{regime_mair}]        // mair, sctlr
    msr     ttbr0_el1, x2
    msr     tcr_el1, x3
    msr     mair_el1, x4
    isb
    tlbi    vmalle1
    dsb     nsh
    isb
    msr     sctlr_el1, x5
    isb
    msr     tpidr_el1, x0
    bl      el1_start_secondary
    b       park

    .section .bss.boot_stack, "aw", @nobits
    .balign 4096
    .space  {page}                              // for the report of an overflow
    .global el1_boot_guard
el1_boot_guard:                                 // left out of the page tables
    .space  {page}
el1_boot_stack:
    .space  {stack_size}
    "#,
    hcr = const from_el2::HCR,
    stack_size = const 0x10000,
    page = const pages::PAGE,
    regime_ttbr = const offset_of!(Regime, ttbr),
    regime_mair = const offset_of!(Regime, mair),
    stack_top = const offset_of!(PerCpu, stack_top),
);
