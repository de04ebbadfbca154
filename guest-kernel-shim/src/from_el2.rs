// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves EL2 if a machine without a hypervisor starts us there: EL1 gets the machine, unaffected by leftovers of a
//! reset or of firmware.

use aarch64_cpu::registers::{
    HCR_EL2, ICH_HCR_EL2, ID_AA64PFR0_EL1, Readable, SCTLR_EL1, VTTBR_EL2, Writeable,
};
use arch::controls::Controls;
use arch::image::SCTLR_EL1_RES1;
use arch::regs::ICC_SRE_EL2;
use arch::{gic_cpu, insn};

/// HCR_EL2 (DDI 0487K.a, D24.2.53): EL1 is AArch64 (RW), pointer authentication (API, APK) and SCXTNUM_ELx (EnSCXT) are
/// its own; nothing traps, nothing is routed to EL2, E2H is 0. It is written first, because E2H changes the meaning of
/// other registers.
pub const HCR: u64 = 1 << 31 | 3 << 40 | 1 << 53;

/// No feature that this kernel uses traps; SVE and other unused features may. EL1 has the physical counter and timer.
const CONTROLS: Controls = Controls {
    cptr: 0x33ff,
    mdcr: 0,
    cnthctl: 3,
    hcrx: 1 << 11,
    // Nothing here is partitioned, and no register that MPAM traps is used.
    mpam: None,
};

/// ICC_SRE_EL2: system registers (0), no bypass (1, 2), and EL1's choice is its own (3).
const SRE: u64 = 0xf;

/// Runs at EL2 with [`HCR`] in force, interrupts masked, and the MMU off. The exception return
/// to EL1 comes next.
#[unsafe(no_mangle)]
extern "C" fn el2_hand_down() {
    CONTROLS.write();
    // The first instruction at EL1 is fetched under this setting.
    SCTLR_EL1.set(SCTLR_EL1_RES1);
    // Translations are tagged with the VMID even without stage 2: CPUs with different VMIDs would
    // not see each other's invalidations (DDI 0487K.a, D8.16).
    VTTBR_EL2.set(0);
    // ID_AA64PFR0_EL1.GIC (27:24): without system registers, there is a GICv2.
    if ID_AA64PFR0_EL1.get() >> 24 & 0xf != 0 {
        // ICH_HCR_EL2 can trap EL1's accesses to the interface.
        ICH_HCR_EL2.set(0);
        ICC_SRE_EL2.set(SRE);
        insn::isb();
        gic_cpu::forget_active(gic_cpu::has_group0());
    }
    HCR_EL2.set(HCR);
}
