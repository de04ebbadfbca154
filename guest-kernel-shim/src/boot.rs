// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first instructions at EL1, with the MMU off and no stack.

use core::mem::offset_of;

use arch::hold::Release;
use pages::Regime;

use crate::percpu::PerCpu;

unsafe extern "C" {
    fn _el1_primary();
    fn _el1_held();
}

/// Lets held CPUs go, each with its [`PerCpu`].
pub static EL1_RELEASE: Release = Release::new();

arch::image_start!(_el1_primary, _el1_held);
arch::held_entry!("_el1_held", EL1_RELEASE, "el1_secondary");

arch::symbol_addresses! {
    /// Entry of the other CPUs.
    secondary_entry = el1_secondary;
}

/// SCTLR_EL1 with the MMU off: its RES1 bits (DDI 0487K.a, D23.2.139).
pub const SCTLR_RES1: u64 = 0x30d0_0800;

core::arch::global_asm!(
    r#"
    // EL1 in a known state; from EL2, where a machine without hypervisor
    // starts us, first down to EL1. Clobbers x1 and x2.
    .macro el1_reset
        msr     daifset, #15
        mrs     x1, CurrentEL
        cmp     x1, #8
        b.ne    1f
        mov     x1, #(1 << 31)                  // HCR_EL2.RW, nothing trapped or routed
        msr     hcr_el2, x1
        mov     x1, #3                          // EL1 has the physical counter and timer
        msr     cnthctl_el2, x1
        msr     cntvoff_el2, xzr
        mov     x1, #0x33ff                     // no FP trap
        msr     cptr_el2, x1
        mrs     x1, midr_el1
        msr     vpidr_el2, x1
        mrs     x1, mpidr_el1
        msr     vmpidr_el2, x1
        mov     x1, #0xf                        // EL1 has the GIC's registers
        msr     S3_4_C12_C9_5, x1               // ICC_SRE_EL2
        mov     x1, #0x3c5                      // EL1h, masked
        msr     spsr_el2, x1
        adr     x1, 1f
        msr     elr_el2, x1
        isb
        eret
1:      ldr     x1, ={sctlr}
        msr     sctlr_el1, x1
        adrp    x1, el1_vectors
        add     x1, x1, :lo12:el1_vectors
        msr     vbar_el1, x1
        msr     cntkctl_el1, xzr                // no event stream, nothing for EL0
        isb
    .endm

    .section .text.boot, "ax"
    // In: x0 = device tree.
    .global _el1_primary
_el1_primary:
    el1_reset
    adrp    x1, el1_boot_stack + {stack_size}
    add     sp, x1, :lo12:el1_boot_stack + {stack_size}
    bl      el1_start
park:
    wfe
    b       park

    // In: x0 = PerCpu, as the context id of CPU_ON.
    .global el1_secondary
el1_secondary:
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
    ldr     x1, [x0, #{stack_top}]
    mov     sp, x1
    msr     tpidr_el1, x0
    bl      el1_start_secondary
    b       park

    .section .bss.boot_stack, "aw", @nobits
    .balign 4096
    .space  {page}                              // for what is said of an overflow
    .global el1_boot_guard
el1_boot_guard:                                 // left out of the page tables
    .space  {page}
el1_boot_stack:
    .space  {stack_size}
    "#,
    sctlr = const SCTLR_RES1,
    stack_size = const 0x10000,
    page = const pages::PAGE,
    regime_ttbr = const offset_of!(Regime, ttbr),
    regime_mair = const offset_of!(Regime, mair),
    stack_top = const offset_of!(PerCpu, stack_top),
);
