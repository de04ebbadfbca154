// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes trapped waits (ISS of class 0x01, D23.2.39).

/// The instruction that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// WFI.
    Wfi,
    /// WFE.
    Wfe,
    /// WFI with timeout.
    Wfit,
    /// WFE with timeout.
    Wfet,
}

/// A trapped wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wfx {
    /// The instruction that waits.
    pub kind: Kind,
    /// General register that holds the deadline, in ticks of the virtual count; 31 reads as zero.
    /// `None` without a timeout, or if the PE did not report the register (RV = 0), in which case
    /// no deadline can be kept.
    pub deadline_register: Option<u32>,
}

impl Wfx {
    /// Decodes the ISS: TI is bits 1:0, RV is bit 2, RN is bits 9:5.
    #[must_use]
    #[inline(always)]
    pub const fn decode(iss: u32) -> Self {
        let kind = match iss & 3 {
            0 => Kind::Wfi,
            1 => Kind::Wfe,
            2 => Kind::Wfit,
            _ => Kind::Wfet,
        };
        let timed = iss & 2 != 0 && iss & 4 != 0;
        Self {
            kind,
            deadline_register: if timed { Some(iss >> 5 & 31) } else { None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syndromes_as_machines_report_them() {
        let decode = |esr: u64| Wfx::decode(crate::esr::Esr(esr).iss());
        let timed = |kind, register| Wfx {
            kind,
            deadline_register: Some(register),
        };
        assert_eq!(decode(0x07e0_0000).kind, Kind::Wfi);
        assert_eq!(decode(0x07e0_0001).kind, Kind::Wfe);
        assert_eq!(decode(0x07e0_0186), timed(Kind::Wfit, 12));
        assert_eq!(decode(0x07e0_0187), timed(Kind::Wfet, 12));
        assert_eq!(decode(0x07e0_00e7), timed(Kind::Wfet, 7));
    }

    #[test]
    fn every_syndrome() {
        for iss in 0..1 << 10 {
            let wait = Wfx::decode(iss);
            let timed = matches!(wait.kind, Kind::Wfit | Kind::Wfet);
            let expected = (timed && iss & 4 != 0).then_some(iss >> 5);
            assert_eq!(wait.deadline_register, expected, "{iss:#x}");
        }
    }
}
