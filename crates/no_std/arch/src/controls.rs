// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the registers with which EL2 controls EL1 on this CPU. These registers are UNKNOWN after a
//! reset unless noted, so each one is written before EL1 runs. The hypervisor writes them for a
//! vCPU; a guest that starts at EL2 writes them for itself.
//!
//! Section numbers are those of DDI 0487K.a.

use aarch64_cpu::registers::{
    CNTVOFF_EL2, CPTR_EL2, ID_AA64DFR0_EL1, MDCR_EL2, MIDR_EL1, MPIDR_EL1, Readable, VMPIDR_EL2,
    Writeable,
};

use crate::optional::Optional;
use crate::regs::{CNTHCTL_EL2, HSTR_EL2, PMCR_EL0, VPIDR_EL2};

/// The control registers whose values the hypervisor and a guest choose differently.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    /// CPTR_EL2 with E2H = 0 (D24.2.35).
    pub cptr: u64,
    /// MDCR_EL2 (D24.3.17) without HPMN: all event counters belong to EL1.
    pub mdcr: u64,
    /// CNTHCTL_EL2 with E2H = 0 (D24.12.10).
    pub cnthctl: u64,
    /// HCRX_EL2 (D24.2.54).
    pub hcrx: u64,
    /// MPAM2_EL2; `None` leaves memory partitioning unchanged.
    pub mpam: Option<u64>,
}

impl Controls {
    /// Writes the registers on this CPU, except HCR_EL2. Must be followed by a context
    /// synchronization event.
    pub fn write(&self) {
        CPTR_EL2.set(self.cptr);
        MDCR_EL2.set(self.mdcr | stop_counters());
        CNTHCTL_EL2.set(self.cnthctl);
        CNTVOFF_EL2.set(0);
        HSTR_EL2.set(0);
        VPIDR_EL2.set(MIDR_EL1.get());
        VMPIDR_EL2.set(MPIDR_EL1.get());
        Optional::write_all(|register| match register {
            // TCR2_EL2 and SCTLR2_EL2 are written before the MMU is turned on.
            Optional::Tcr2 | Optional::Sctlr2 => None,
            Optional::Hcrx => Some(self.hcrx),
            Optional::Mpam2 => self.mpam,
            Optional::MpamHcr => self.mpam.map(|_| 0),
            // In a fine-grained trap register, 0 traps only the features whose trap bits are inverted
            // (names that begin with n). In an MPAM register, 0 maps no partition to another.
            _ => Some(0),
        });
    }
}

/// PMCR_EL0: 64-bit cycle counter (LC), no counter enabled. A reset leaves LC, DP, X and D UNKNOWN.
const STOPPED: u64 = 1 << 6;

/// Stops the counters of the PMU. Returns the value of MDCR_EL2.HPMN that gives all event counters to EL1.
fn stop_counters() -> u64 {
    let pmu = ID_AA64DFR0_EL1.get() >> 8 & 0xf;
    if matches!(pmu, 0 | 0xf) {
        return 0;
    }
    PMCR_EL0.set(STOPPED);
    // The number of event counters: PMCR_EL0.N, bits 15:11.
    PMCR_EL0.get() >> 11 & 0x1f
}
