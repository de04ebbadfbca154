// SPDX-License-Identifier: MIT OR Apache-2.0
//! What EL2 decides about EL1: control registers of this CPU, all of them UNKNOWN after a
//! reset where nothing else is said, so each is written before EL1 runs. The hypervisor writes
//! them for a vCPU, and a guest that is started at EL2 for itself.
//!
//! Section numbers are those of DDI 0487K.a.

use aarch64_cpu::registers::{
    CNTVOFF_EL2, CPTR_EL2, ID_AA64DFR0_EL1, ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, ID_AA64PFR0_EL1,
    ID_AA64PFR1_EL1, MDCR_EL2, MIDR_EL1, MPIDR_EL1, Readable, VMPIDR_EL2, Writeable,
};

use crate::regs::{
    CNTHCTL_EL2, HAFGRTR_EL2, HCRX_EL2, HDFGRTR_EL2, HDFGRTR2_EL2, HDFGWTR_EL2, HDFGWTR2_EL2,
    HFGITR_EL2, HFGITR2_EL2, HFGRTR_EL2, HFGRTR2_EL2, HFGWTR_EL2, HFGWTR2_EL2, HSTR_EL2, MPAM2_EL2,
    MPAMHCR_EL2, MPAMIDR_EL1, PMCR_EL0, VPIDR_EL2,
};

/// MPAMIDR_EL1.HAS_HCR: there is MPAMHCR_EL2 (DDI 0598D.b, 7.3.4).
const MPAM_HAS_HCR: u64 = 1 << 17;

/// What differs from one use to another.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    /// CPTR_EL2 with E2H = 0 (D24.2.35).
    pub cptr: u64,
    /// MDCR_EL2 (D24.3.17) besides HPMN: all event counters are EL1's.
    pub mdcr: u64,
    /// CNTHCTL_EL2 with E2H = 0 (D24.12.10).
    pub cnthctl: u64,
    /// HCRX_EL2 (D24.2.54).
    pub hcrx: u64,
    /// MPAM2_EL2; `None` leaves memory partitioning as it is.
    pub mpam: Option<u64>,
}

impl Controls {
    /// Writes them on this CPU, all but HCR_EL2. What follows has to be a context
    /// synchronization event.
    pub fn write(&self) {
        CPTR_EL2.set(self.cptr);
        MDCR_EL2.set(self.mdcr | counters());
        CNTHCTL_EL2.set(self.cnthctl);
        CNTVOFF_EL2.set(0);
        HSTR_EL2.set(0);
        VPIDR_EL2.set(MIDR_EL1.get());
        VMPIDR_EL2.set(MPIDR_EL1.get());
        // FEAT_HCX.
        if has(ID_AA64MMFR1_EL1.get(), 40) {
            HCRX_EL2.set(self.hcrx);
        }
        fine_grained_traps();
        if let Some(mpam) = self.mpam.filter(|_| has_mpam()) {
            MPAM2_EL2.set(mpam);
            if MPAMIDR_EL1.get() & MPAM_HAS_HCR != 0 {
                MPAMHCR_EL2.set(0);
            }
        }
    }
}

/// FEAT_FGT and FEAT_FGT2: nothing traps that only these could trap; what they could let
/// through (the bits whose names begin with n) is not.
fn fine_grained_traps() {
    let version = ID_AA64MMFR0_EL1.get() >> 56 & 0xf;
    if version == 0 {
        return;
    }
    HFGRTR_EL2.set(0);
    HFGWTR_EL2.set(0);
    HFGITR_EL2.set(0);
    HDFGRTR_EL2.set(0);
    HDFGWTR_EL2.set(0);
    // FEAT_AMUv1.
    if has(ID_AA64PFR0_EL1.get(), 44) {
        HAFGRTR_EL2.set(0);
    }
    if version > 1 {
        HFGRTR2_EL2.set(0);
        HFGWTR2_EL2.set(0);
        HFGITR2_EL2.set(0);
        HDFGRTR2_EL2.set(0);
        HDFGWTR2_EL2.set(0);
    }
}

/// FEAT_MPAM, by its number or its fraction.
#[must_use]
pub fn has_mpam() -> bool {
    has(ID_AA64PFR0_EL1.get(), 40) || has(ID_AA64PFR1_EL1.get(), 16)
}

/// The four-bit field of `register` whose lowest bit is `low`, not being zero.
const fn has(register: u64, low: u32) -> bool {
    register >> low & 0xf != 0
}

/// MDCR_EL2.HPMN: all event counters are EL1's.
fn counters() -> u64 {
    let pmu = ID_AA64DFR0_EL1.get() >> 8 & 0xf;
    if matches!(pmu, 0 | 0xf) {
        return 0;
    }
    // PMCR_EL0.N, bits 15:11.
    PMCR_EL0.get() >> 11 & 0x1f
}
