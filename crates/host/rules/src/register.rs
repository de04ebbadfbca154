// SPDX-License-Identifier: MIT OR Apache-2.0
//! System registers, identified by the fields of the instructions that access them.

use std::fmt;

/// A system register, as the fields o0, op1, CRn, CRm and op2 of MRS and MSR (DDI 0487K.a, C5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u16);

impl Register {
    /// Returns the register that the assembler calls `S<op0>_<op1>_C<crn>_C<crm>_<op2>`. `op0` is 2 or 3.
    #[must_use]
    pub const fn new(op0: u16, op1: u16, crn: u16, crm: u16, op2: u16) -> Self {
        Self((op0 & 1) << 14 | op1 << 11 | crn << 7 | crm << 3 | op2)
    }

    /// Returns the register that the MRS or MSR `word` accesses.
    pub(crate) const fn of_word(word: u32) -> Self {
        Self((word >> 5) as u16 & 0x7fff)
    }

    /// Returns the register's fields at their bit positions in an instruction.
    #[cfg(test)]
    pub(crate) const fn to_word(self) -> u32 {
        (self.0 as u32) << 5
    }

    /// Returns the exception level of the register: the lowest level in its name.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self.op1() {
            3 => 0,
            4 => 2,
            6 => 3,
            _ => 1,
        }
    }

    /// Whether this is a register of the GIC's physical or virtual CPU interface.
    #[must_use]
    pub const fn is_interface(self) -> bool {
        self.op1() == 0 && (self.crn() == 12 && self.crm() >= 8 || self.0 == ICC_PMR_EL1.0)
    }

    /// Whether this is ICH_LR\<n>_EL2.
    #[must_use]
    pub const fn is_list_register(self) -> bool {
        self.op1() == 4 && self.crn() == 12 && (self.crm() == 12 || self.crm() == 13)
    }

    /// Returns n if this is ICH_LR\<n>_EL2.
    #[must_use]
    pub const fn list_register(self) -> Option<u8> {
        if self.is_list_register() {
            Some(((self.crm() & 1) << 3 | self.0 & 7) as u8)
        } else {
            None
        }
    }

    /// Returns the exception level and the group g if this is ICC_AP\<g>R\<n>_EL1 or ICH_AP\<g>R\<n>_EL2.
    #[must_use]
    pub const fn active_priorities(self) -> Option<(u8, u8)> {
        let n = self.0 & 7;
        match (self.op1(), self.crn(), self.crm(), n) {
            (0, 12, 8, 4..) => Some((1, 0)),
            (0, 12, 9, ..4) => Some((1, 1)),
            (4, 12, 8, ..4) => Some((2, 0)),
            (4, 12, 9, ..4) => Some((2, 1)),
            _ => None,
        }
    }

    /// Whether this register belongs to a generic timer.
    #[must_use]
    pub const fn is_timer(self) -> bool {
        self.crn() == 14 && matches!(self.crm(), 2 | 3) && self.0 >> 14 == 1
    }

    /// Whether this is the CTL register of the timer to which `other` belongs.
    #[must_use]
    pub const fn is_control_of(self, other: Self) -> bool {
        self.is_timer() && self.0 & 7 == 1 && self.0 >> 3 == other.0 >> 3
    }

    const fn op1(self) -> u16 {
        self.0 >> 11 & 7
    }

    const fn crn(self) -> u16 {
        self.0 >> 7 & 15
    }

    const fn crm(self) -> u16 {
        self.0 >> 3 & 15
    }
}

/// Defines a constant for each register, and a table of the registers' names.
macro_rules! registers {
    ($($name:ident = $op0:literal, $op1:literal, $crn:literal, $crm:literal, $op2:literal;)*) => {
        $(
            #[allow(missing_docs, reason = "the architecture's name says it")]
            pub const $name: Register = Register::new($op0, $op1, $crn, $crm, $op2);
        )*
        const NAMES: &[(Register, &str)] = &[$(($name, stringify!($name))),*];
    };
}

registers! {
    SCTLR_EL1 = 3, 0, 1, 0, 0;
    CPACR_EL1 = 3, 0, 1, 0, 2;
    TTBR0_EL1 = 3, 0, 2, 0, 0;
    TTBR1_EL1 = 3, 0, 2, 0, 1;
    TCR_EL1 = 3, 0, 2, 0, 2;
    SPSR_EL1 = 3, 0, 4, 0, 0;
    ELR_EL1 = 3, 0, 4, 0, 1;
    ESR_EL1 = 3, 0, 5, 2, 0;
    FAR_EL1 = 3, 0, 6, 0, 0;
    PAR_EL1 = 3, 0, 7, 4, 0;
    MAIR_EL1 = 3, 0, 10, 2, 0;
    VBAR_EL1 = 3, 0, 12, 0, 0;
    CONTEXTIDR_EL1 = 3, 0, 13, 0, 1;
    TPIDR_EL1 = 3, 0, 13, 0, 4;
    CNTKCTL_EL1 = 3, 0, 14, 1, 0;
    ICC_PMR_EL1 = 3, 0, 4, 6, 0;
    ICC_IAR0_EL1 = 3, 0, 12, 8, 0;
    ICC_EOIR0_EL1 = 3, 0, 12, 8, 1;
    ICC_AP0R0_EL1 = 3, 0, 12, 8, 4;
    ICC_AP1R0_EL1 = 3, 0, 12, 9, 0;
    ICC_DIR_EL1 = 3, 0, 12, 11, 1;
    ICC_RPR_EL1 = 3, 0, 12, 11, 3;
    ICC_SGI1R_EL1 = 3, 0, 12, 11, 5;
    ICC_ASGI1R_EL1 = 3, 0, 12, 11, 6;
    ICC_SGI0R_EL1 = 3, 0, 12, 11, 7;
    ICC_IAR1_EL1 = 3, 0, 12, 12, 0;
    ICC_EOIR1_EL1 = 3, 0, 12, 12, 1;
    ICC_HPPIR1_EL1 = 3, 0, 12, 12, 2;
    ICC_BPR1_EL1 = 3, 0, 12, 12, 3;
    ICC_CTLR_EL1 = 3, 0, 12, 12, 4;
    ICC_SRE_EL1 = 3, 0, 12, 12, 5;
    ICC_IGRPEN1_EL1 = 3, 0, 12, 12, 7;
    CNTPCT_EL0 = 3, 3, 14, 0, 1;
    CNTVCT_EL0 = 3, 3, 14, 0, 2;
    TPIDR_EL0 = 3, 3, 13, 0, 2;
    PMCR_EL0 = 3, 3, 9, 12, 0;
    PMCNTENSET_EL0 = 3, 3, 9, 12, 1;
    PMCCNTR_EL0 = 3, 3, 9, 13, 0;
    CNTP_CTL_EL0 = 3, 3, 14, 2, 1;
    CNTP_CVAL_EL0 = 3, 3, 14, 2, 2;
    CNTV_CTL_EL0 = 3, 3, 14, 3, 1;
    CNTV_CVAL_EL0 = 3, 3, 14, 3, 2;
    VPIDR_EL2 = 3, 4, 0, 0, 0;
    VMPIDR_EL2 = 3, 4, 0, 0, 5;
    SCTLR_EL2 = 3, 4, 1, 0, 0;
    HCR_EL2 = 3, 4, 1, 1, 0;
    MDCR_EL2 = 3, 4, 1, 1, 1;
    CPTR_EL2 = 3, 4, 1, 1, 2;
    HSTR_EL2 = 3, 4, 1, 1, 3;
    TTBR0_EL2 = 3, 4, 2, 0, 0;
    TCR_EL2 = 3, 4, 2, 0, 2;
    VTTBR_EL2 = 3, 4, 2, 1, 0;
    VTCR_EL2 = 3, 4, 2, 1, 2;
    SPSR_EL2 = 3, 4, 4, 0, 0;
    ELR_EL2 = 3, 4, 4, 0, 1;
    ESR_EL2 = 3, 4, 5, 2, 0;
    FAR_EL2 = 3, 4, 6, 0, 0;
    HPFAR_EL2 = 3, 4, 6, 0, 4;
    MAIR_EL2 = 3, 4, 10, 2, 0;
    VBAR_EL2 = 3, 4, 12, 0, 0;
    TPIDR_EL2 = 3, 4, 13, 0, 2;
    CNTVOFF_EL2 = 3, 4, 14, 0, 3;
    CNTHCTL_EL2 = 3, 4, 14, 1, 0;
    CNTHP_CTL_EL2 = 3, 4, 14, 2, 1;
    CNTHP_CVAL_EL2 = 3, 4, 14, 2, 2;
    ICH_AP0R0_EL2 = 3, 4, 12, 8, 0;
    ICH_AP1R0_EL2 = 3, 4, 12, 9, 0;
    ICC_SRE_EL2 = 3, 4, 12, 9, 5;
    ICH_HCR_EL2 = 3, 4, 12, 11, 0;
    ICH_MISR_EL2 = 3, 4, 12, 11, 2;
    ICH_EISR_EL2 = 3, 4, 12, 11, 3;
    ICH_ELRSR_EL2 = 3, 4, 12, 11, 5;
    ICH_VMCR_EL2 = 3, 4, 12, 11, 7;
    ICH_LR0_EL2 = 3, 4, 12, 12, 0;
    ICH_LR1_EL2 = 3, 4, 12, 12, 1;
    ICH_LR2_EL2 = 3, 4, 12, 12, 2;
    ICH_LR3_EL2 = 3, 4, 12, 12, 3;
    SCTLR_EL3 = 3, 6, 1, 0, 0;
    SCR_EL3 = 3, 6, 1, 1, 0;
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(register, _)| register == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(
                f,
                "S{}_{}_C{}_C{}_{}",
                2 + (self.0 >> 14),
                self.op1(),
                self.crn(),
                self.crm(),
                self.0 & 7
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_their_names_and_levels() {
        assert_eq!(TPIDR_EL2.to_string(), "TPIDR_EL2");
        assert_eq!(Register::new(3, 0, 15, 2, 7).to_string(), "S3_0_C15_C2_7");
        // The word is `mrs x0, tpidr_el2`, as the assembler generates it.
        assert_eq!(Register::of_word(0xd53c_d040), TPIDR_EL2);
        assert_eq!(
            (TPIDR_EL2.level(), TPIDR_EL1.level(), CNTVCT_EL0.level()),
            (2, 1, 0)
        );
        assert!(ICC_PMR_EL1.is_interface() && ICC_IAR1_EL1.is_interface());
        assert!(!VBAR_EL1.is_interface() && !ICH_HCR_EL2.is_interface());
        assert!(ICH_LR3_EL2.is_list_register() && !ICH_ELRSR_EL2.is_list_register());
        assert_eq!(ICH_LR3_EL2.list_register(), Some(3));
        assert_eq!(Register::new(3, 4, 12, 13, 7).list_register(), Some(15));
        let priorities = [ICC_AP0R0_EL1, ICC_AP1R0_EL1, ICH_AP0R0_EL2, ICH_AP1R0_EL2];
        assert_eq!(
            priorities.map(Register::active_priorities),
            [Some((1, 0)), Some((1, 1)), Some((2, 0)), Some((2, 1))]
        );
        assert_eq!(ICC_IAR0_EL1.active_priorities(), None);
        assert!(Register::new(3, 3, 14, 3, 1).is_timer() && !CNTVCT_EL0.is_timer());
        assert!(Register::new(3, 4, 14, 2, 2).is_timer() && !CNTHCTL_EL2.is_timer());
    }
}
