// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first instructions at EL2, with the MMU off and no stack.
//!
//! `_el2_primary` runs on the CPU that the loader started. If the machine has no EL2 for us, that CPU
//! is at EL1 ([`crate::boot::alone`]). `_el2_secondary` runs on each other CPU, with x0 = its
//! [`PerCpu`] (the PSCI context id). CPUs that a loader without PSCI lets into the image wait at
//! `_el2_held`. UEFI calls `_efi_entry`, with MMU and caches on; see [`crate::boot::efi`]. That code
//! ends at `_el2_leave_firmware`, which turns MMU and caches off and continues like the other
//! entries.

use core::mem::offset_of;

use arch::hold::Release;
use arch::optional::{LEFT, Optional};
use pages::Regime;

use crate::cpu::percpu::PerCpu;
use crate::cpu::traps;
use crate::machine::memory::SCTLR_RES1;

/// HCR_EL2 until a vCPU runs: EL1 is AArch64 (RW), and all asynchronous exceptions are routed to EL2
/// ([`traps::HCR_INJECT`]), because otherwise they would not end a WFI at EL2. All other bits are 0, including E2H and
/// TGE (DDI 0487K.a, D24.2.53).
const HCR_BOOT: u64 = 1 << 31 | traps::HCR_INJECT;

/// SCTLR_EL1 with the MMU off: its RES1 bits (DDI 0487K.a, D23.2.139).
const EL1_SCTLR_RES1: u64 = 0x30d0_0800;

/// Releases held CPUs, each with its [`PerCpu`].
pub static EL2_RELEASE: Release = Release::new();

unsafe extern "C" {
    fn _el2_primary();
    fn _el2_held();
    fn _efi_entry();
    /// Like [`leave_firmware`], but at EL1, for [`crate::boot::alone`].
    ///
    /// # Safety
    /// See [`leave_firmware`].
    #[link_name = "_el1_leave_firmware"]
    pub fn leave_firmware_at_el1() -> !;
    /// Starts the image at `entry`, with the device tree at `tree`, as the boot protocol requires.
    ///
    /// # Safety
    /// Image and tree must be in memory and not only in caches, MMU and data caches must be off, and nothing that
    /// belongs to this image may be used afterwards.
    #[link_name = "_el1_run_guest"]
    pub fn run_guest(tree: u64, entry: u64) -> !;
    /// Turns MMU and caches off and starts the hypervisor on its own stack, for
    /// the machine that [`crate::boot::efi`] has described.
    ///
    /// # Safety
    /// Firmware must have handed the machine over, and the whole image must be
    /// clean to the point of coherency.
    #[link_name = "_el2_leave_firmware"]
    pub fn leave_firmware() -> !;
}

arch::symbol_addresses! {
    /// Entry of the other CPUs, at EL2 with the MMU off.
    secondary_entry = _el2_secondary;
}

/// Entry of CPUs that were let into the image early and wait for their release.
pub fn held_cpu_entry() -> u64 {
    _el2_held as *const () as u64
}

arch::image_start!(_el2_primary, _el2_held, efi _efi_entry);
arch::held_entry!(
    // strict caches-agree: the value read is stale until the whole line is cleaned and read again.
    _el2_held: EL2_RELEASE => "_el2_secondary"
);

core::arch::global_asm!(
    r#"
    // Common to all entries: puts EL2 into a known state. A pending SError waits until it can be reported. The MMU goes
    // off first, because E2H changes the meaning of the translation registers. TPIDR_EL2 is UNKNOWN after a reset; 0
    // means that there is no PerCpu yet. A loader may have used either stack pointer. SCTLR_EL2 is set before anything
    // is loaded, because data may be big-endian. Nothing that EL3 may trap is accessed before there are vectors.
    // Clobbers x1.
    .macro el2_reset
        msr     daifset, #15
        msr     spsel, #1
        msr     tpidr_el2, xzr
        mov     x1, #({sctlr} & 0xffff)
        movk    x1, #({sctlr} >> 16), lsl #16
        msr     sctlr_el2, x1
        isb
        ldr     x1, ={hcr}
        msr     hcr_el2, x1
        adrp    x1, el2_vectors
        add     x1, x1, :lo12:el2_vectors
        msr     vbar_el2, x1
        isb                                 // an exception may come from here on
    .endm

    // Likewise at EL1.
    .macro el1_reset
        msr     spsel, #1
        ldr     x1, ={el1_sctlr}
        msr     sctlr_el1, x1
        adrp    x1, el1_vectors
        add     x1, x1, :lo12:el1_vectors
        msr     vbar_el1, x1
        isb
        msr     daifset, #15
    .endm

    .section .text.boot, "ax"
    // In: x0 = device tree.
    .global _el2_primary
_el2_primary:
    adrp    x1, el2_boot_stack + {stack_size}
    add     x2, x1, :lo12:el2_boot_stack + {stack_size}
    mrs     x1, CurrentEL
    cmp     x1, #8
    b.ne    1f
    el2_reset
    mov     sp, x2
    bl      el2_start
1:  cmp     x1, #4
    b.ne    2f
    el1_reset
    mov     sp, x2
    bl      el1_start
2:  msr     spsel, #1
    mov     sp, x2
    bl      el2_missing
park:
    wfe
    b       park

    // In: x0 = PerCpu.
    .global _el2_secondary
_el2_secondary:
    el2_reset
    ldr     x1, [x0, #{stack_top}]
    mov     sp, x1
    // TCR2_EL2 and SCTLR2_EL2 change how the MMU works and what tables mean, above all for
    // permissions (FEAT_S1PIE). Each is written if the CPU has it, according to
    // ID_AA64MMFR3_EL1.TCRX (3:0) and SCTLRX (7:4), and if the first CPU could write it.
    mrs     x1, S3_0_C0_C7_3                // ID_AA64MMFR3_EL1
    adrp    x2, {left}
    add     x2, x2, :lo12:{left}
    ldrb    w3, [x2, #{tcr2}]
    ldrb    w4, [x2, #{sctlr2}]
    tst     x1, #0xf
    b.eq    5f
    cbnz    w3, 5f
    msr     S3_4_C2_C0_3, xzr               // TCR2_EL2
5:  tst     x1, #0xf0
    b.eq    6f
    cbnz    w4, 6f
    msr     S3_4_C1_C0_3, xzr               // SCTLR2_EL2
6:
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
    msr     tpidr_el2, x0
    bl      el2_start_secondary
    b       park

    // In (UEFI's calling convention): x0 = image handle, x1 = system table, SP = firmware's stack.
    .global _efi_entry
_efi_entry:
    stp     x29, x30, [sp, #-32]!
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    bl      _image_relocate
    ldp     x0, x1, [sp, #16]
    bl      efi_start
    udf     #0

    .global _el2_leave_firmware
_el2_leave_firmware:
    msr     daifset, #15
    el2_reset
    // Instructions and translations that firmware left in caches are not valid.
    tlbi    alle2
    ic      iallu
    dsb     sy
    isb
    adrp    x1, el2_boot_stack + {stack_size}
    add     sp, x1, :lo12:el2_boot_stack + {stack_size}
    bl      el2_start_described
    b       park

    .global _el1_leave_firmware
_el1_leave_firmware:
    msr     daifset, #15
    el1_reset
    tlbi    vmalle1
    ic      iallu
    dsb     sy
    isb
    adrp    x1, el2_boot_stack + {stack_size}
    add     sp, x1, :lo12:el2_boot_stack + {stack_size}
    bl      el1_start_described
    b       park

    // In: x0 = device tree, x1 = entry.
    .global _el1_run_guest
_el1_run_guest:
    ic      iallu
    dsb     sy
    isb
    mov     x4, x1
    mov     x1, #0                          // the protocol requires these three to be 0
    mov     x2, #0
    mov     x3, #0
    br      x4

    // An exception while EL1 is prepared for the guest is only reported, not handled.
    .balign 2048
el1_vectors:
    .rept   16
    .balign 128
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    mrs     x2, far_el1
    bl      el1_failed
    .endr

    .section .bss.boot_stack, "aw", @nobits
    .balign 4096
    .global el2_boot_guard
el2_boot_guard:                             // left out of the page tables
    .space  4096
el2_boot_stack:
    .space  {stack_size}
    "#,
    hcr = const HCR_BOOT,
    sctlr = const SCTLR_RES1,
    el1_sctlr = const EL1_SCTLR_RES1,
    left = sym LEFT,
    tcr2 = const Optional::Tcr2 as usize,
    sctlr2 = const Optional::Sctlr2 as usize,
    stack_size = const 0x10000,
    regime_ttbr = const offset_of!(Regime, ttbr),
    regime_mair = const offset_of!(Regime, mair),
    stack_top = const offset_of!(PerCpu, stack_top),
);
