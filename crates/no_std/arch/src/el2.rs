// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of EL2 that differ between the guests of a CPU, in groups.

use aarch64_cpu::registers::*;

use crate::el1::group;
use crate::regs::{CNTHCTL_EL2, ICH_HCR_EL2};

group! {
    /// Registers whose values for a vCPU change from time to time.
    Changing {
        hcr = HCR_EL2,
        vectors = VBAR_EL2,
        counters = CNTHCTL_EL2,
        interface = ICH_HCR_EL2,
    }
}

group! {
    /// Registers whose values for a vCPU never change.
    Fixed {
        cptr = CPTR_EL2,
        mdcr = MDCR_EL2,
    }
}
