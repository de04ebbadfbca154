// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first instructions at EL2, with the MMU off and no stack.
//!
//! `_el2_primary` runs on the CPU that the loader started, `_el2_secondary` on
//! each other one, with x0 = its [`PerCpu`] (the PSCI context id).
//! `_el2_held` is the waiting place of CPUs that a loader without PSCI lets in.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

use pages::Regime;

use crate::percpu::PerCpu;

/// HCR_EL2 until a vCPU runs: EL1 is AArch64 (RW), everything else off, so
/// neither E2H nor TGE (DDI 0487K.a, D23.2.51).
const HCR_BOOT: u64 = 1 << 31;
/// SCTLR_EL2 with the MMU off: the RES1 bits of E2H=0 (DDI 0487K.a, D23.2.140).
pub const SCTLR_RES1: u64 = 0x30c5_0830;

/// How a held CPU is let go: the one whose affinity is `mpidr` continues at
/// `_el2_secondary` with `per_cpu`.
#[repr(C, align(64))]
pub struct Release {
    /// Affinity of the CPU that may go; all ones means none.
    pub mpidr: AtomicU64,
    /// Address of its [`PerCpu`].
    pub per_cpu: AtomicU64,
}

/// The one release slot; CPUs are released one after another.
#[unsafe(no_mangle)]
pub static EL2_RELEASE: Release = Release {
    mpidr: AtomicU64::new(u64::MAX),
    per_cpu: AtomicU64::new(0),
};

unsafe extern "C" {
    fn _el2_primary();
    fn _el2_held();
}

arch::symbol_addresses! {
    /// Entry of the other CPUs, at EL2 with the MMU off.
    secondary_entry = _el2_secondary;
    /// Entry of CPUs that were let in and wait for their turn.
    held_entry = el2_held_entry;
}

arch::image_start!(_el2_primary, _el2_held);

core::arch::global_asm!(
    r#"
    // Common: EL2 in a known state. Clobbers x1.
    .macro el2_reset
        mov     x1, #{hcr}
        msr     hcr_el2, x1
        ldr     x1, ={sctlr}
        msr     sctlr_el2, x1
        isb
        adrp    x1, el2_vectors
        add     x1, x1, :lo12:el2_vectors
        msr     vbar_el2, x1
        msr     daifset, #15
    .endm

    .section .text.boot, "ax"
    // In: x0 = device tree, x19 = load address.
    .global _el2_primary
_el2_primary:
    mrs     x1, CurrentEL
    cmp     x1, #8
    b.ne    park                            // no console yet to say so
    el2_reset
    adrp    x1, el2_boot_stack + {stack_size}
    add     sp, x1, :lo12:el2_boot_stack + {stack_size}
    bl      el2_start
park:
    wfe
    b       park

    // In: x0 = PerCpu.
    .global _el2_secondary
_el2_secondary:
    el2_reset
    adrp    x1, EL2_REGIME
    add     x1, x1, :lo12:EL2_REGIME
    ldp     x2, x3, [x1, #{regime_ttbr}]    // ttbr, tcr
    ldp     x4, x5, [x1, #{regime_mair}]    // mair, sctlr
    msr     ttbr0_el2, x2
    msr     tcr_el2, x3
    msr     mair_el2, x4
    isb
    tlbi    alle2
    dsb     nsh
    isb
    msr     sctlr_el2, x5
    isb
    ldr     x1, [x0, #{stack_top}]
    mov     sp, x1
    msr     tpidr_el2, x0
    bl      el2_start_secondary
    b       park

    .global _el2_held
    .global el2_held_entry
_el2_held:
el2_held_entry:
    mrs     x1, mpidr_el1
    ldr     x2, =0xff00ffffff               // affinity fields
    and     x1, x1, x2
    adrp    x2, EL2_RELEASE
    add     x2, x2, :lo12:EL2_RELEASE
1:  ldr     x3, [x2]
    cmp     x3, x1
    b.eq    2f
    wfe                                     // the releasing CPU sends an event
    b       1b
2:  ldr     x0, [x2, #8]
    b       _el2_secondary

    .section .bss.boot_stack, "aw", @nobits
    .balign 16
el2_boot_stack:
    .space  {stack_size}
    "#,
    hcr = const HCR_BOOT,
    sctlr = const SCTLR_RES1,
    stack_size = const 0x10000,
    regime_ttbr = const offset_of!(Regime, ttbr),
    regime_mair = const offset_of!(Regime, mair),
    stack_top = const offset_of!(PerCpu, stack_top),
);
