// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the registers of the interrupt controller's CPU interface (IHI 0069H, 12.2) by their
//! encoding in a syndrome.

use crate::esr::encoding;

/// A register that traps because of ICH_HCR_EL2.TALL1 or TC (IHI 0069H, 12.4.5), except the ones
/// that send SGIs; and ICC_BPR0_EL1, which also serves Group 1 if ICC_CTLR_EL1.CBPR is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// ICC_IAR1_EL1.
    Acknowledge,
    /// ICC_EOIR1_EL1.
    End,
    /// ICC_HPPIR1_EL1.
    HighestPending,
    /// ICC_BPR0_EL1.
    CommonBinaryPoint,
    /// ICC_BPR1_EL1.
    BinaryPoint,
    /// ICC_IGRPEN1_EL1.
    Enable,
    /// ICC_AP1R\<n\>_EL1.
    ActivePriorities(usize),
    /// ICC_DIR_EL1.
    Deactivate,
    /// ICC_PMR_EL1.
    Mask,
    /// ICC_CTLR_EL1.
    Control,
    /// ICC_RPR_EL1.
    Running,
}

const NAMES: [(u32, Register); 14] = [
    (encoding(3, 0, 4, 6, 0), Register::Mask),
    (encoding(3, 0, 12, 8, 3), Register::CommonBinaryPoint),
    (encoding(3, 0, 12, 9, 0), Register::ActivePriorities(0)),
    (encoding(3, 0, 12, 9, 1), Register::ActivePriorities(1)),
    (encoding(3, 0, 12, 9, 2), Register::ActivePriorities(2)),
    (encoding(3, 0, 12, 9, 3), Register::ActivePriorities(3)),
    (encoding(3, 0, 12, 11, 1), Register::Deactivate),
    (encoding(3, 0, 12, 11, 3), Register::Running),
    (encoding(3, 0, 12, 12, 0), Register::Acknowledge),
    (encoding(3, 0, 12, 12, 1), Register::End),
    (encoding(3, 0, 12, 12, 2), Register::HighestPending),
    (encoding(3, 0, 12, 12, 3), Register::BinaryPoint),
    (encoding(3, 0, 12, 12, 4), Register::Control),
    (encoding(3, 0, 12, 12, 7), Register::Enable),
];

impl Register {
    /// Returns the register with encoding `name`.
    #[must_use]
    pub fn named(name: u32) -> Option<Self> {
        let named = NAMES.iter().find(|(one, _)| *one == name);
        named.map(|(_, register)| *register)
    }

    /// Whether TALL1 traps the register.
    #[must_use]
    pub const fn is_group1(self) -> bool {
        !matches!(
            self,
            Self::CommonBinaryPoint | Self::Deactivate | Self::Mask | Self::Control | Self::Running
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_registers() {
        let iss = |read: u32, name: u32| crate::sysreg::SystemRegister::decode(name | read);
        let acknowledge = iss(1, encoding(3, 0, 12, 12, 0));
        assert_eq!(
            Register::named(acknowledge.encoding),
            Some(Register::Acknowledge)
        );
        let control = Register::named(encoding(3, 0, 12, 12, 4));
        assert_eq!(control.map(Register::is_group1), Some(false));
        let third = Register::named(encoding(3, 0, 12, 9, 3));
        assert_eq!(third, Some(Register::ActivePriorities(3)));
        assert!(third.is_some_and(Register::is_group1));
        assert_eq!(Register::named(crate::sysreg::ICC_SGI1R_EL1), None);
        assert_eq!(Register::named(encoding(3, 0, 12, 12, 5)), None);
    }
}
