// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions taken to EL2, by cause.

/// Why an exception was taken to EL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// WFI or WFIT.
    Wfi,
    /// WFE or WFET.
    Wfe,
    /// A write of ICC_SGI1R_EL1.
    Sgi,
    /// An interrupt.
    Irq,
    /// HVC.
    Hvc,
    /// SMC.
    Smc,
    /// Any other access to a system register.
    Sysreg,
    /// A data abort: an access to a device's register.
    Mmio,
    /// Any other cause.
    Other,
}

/// Numbers of exceptions, by [`Cause`].
pub type Exits = [u64; Cause::ALL.len()];

impl Cause {
    /// All causes.
    pub const ALL: [Self; 9] = [
        Self::Wfi,
        Self::Wfe,
        Self::Sgi,
        Self::Irq,
        Self::Hvc,
        Self::Smc,
        Self::Sysreg,
        Self::Mmio,
        Self::Other,
    ];

    /// Returns the name of the cause in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wfi => "wfi",
            Self::Wfe => "wfe",
            Self::Sgi => "sgi",
            Self::Irq => "irq",
            Self::Hvc => "hvc",
            Self::Smc => "smc",
            Self::Sysreg => "sysreg",
            Self::Mmio => "mmio",
            Self::Other => "other",
        }
    }

    /// Returns the cause of a synchronous exception from ESR_EL2 (DDI 0487K.a, D23.2.39).
    #[must_use]
    pub const fn of_syndrome(esr: u64) -> Self {
        /// ISS of an access to a system register, without the general register and the direction.
        const REGISTER: u64 = 0x003f_fc1e;
        /// ISS of ICC_SGI1R_EL1: op0 3, op1 0, CRn 12, CRm 11, op2 5.
        const SGI1R: u64 = 3 << 20 | 5 << 17 | 12 << 10 | 11 << 1;
        match esr >> 26 & 0x3f {
            0x01 if esr & 1 == 0 => Self::Wfi,
            0x01 => Self::Wfe,
            0x16 => Self::Hvc,
            0x17 => Self::Smc,
            0x18 if esr & REGISTER == SGI1R => Self::Sgi,
            0x18 => Self::Sysreg,
            0x24 => Self::Mmio,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syndromes_tell_causes() {
        for (esr, cause) in [
            (0x07e0_0000, Cause::Wfi),
            (0x07e0_0001, Cause::Wfe),
            (0x07e0_0002, Cause::Wfi),
            (0x07e0_0003, Cause::Wfe),
            // These are ICC_SGI1R_EL1 written from x1 and from x7, and ICC_SGI0R_EL1 (op2 7).
            (0x623a_3036, Cause::Sgi),
            (0x623a_30f6, Cause::Sgi),
            (0x623e_3036, Cause::Sysreg),
            (0x5a00_0000, Cause::Hvc),
            (0x5e00_0000, Cause::Smc),
            (0x9200_0045, Cause::Mmio),
            (0x8200_0000, Cause::Other),
        ] {
            assert_eq!(Cause::of_syndrome(esr), cause, "{esr:#x}");
        }
    }
}
