// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trapped system registers (ISS of class 0x18, D23.2.39).

/// ICC_SGI1R_EL1.
pub const ICC_SGI1R_EL1: u32 = encoding(3, 0, 12, 11, 5);
/// ICC_ASGI1R_EL1.
pub const ICC_ASGI1R_EL1: u32 = encoding(3, 0, 12, 11, 6);
/// ICC_SGI0R_EL1.
pub const ICC_SGI0R_EL1: u32 = encoding(3, 0, 12, 11, 7);

/// The bits of the ISS that name the register: all but direction and Rt.
const NAME: u32 = 0x3f_fc1e;

/// A register's name in the places of the ISS.
#[must_use]
pub const fn encoding(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1
}

/// A trapped access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemRegister {
    /// Which register, as [`encoding`] has it.
    pub encoding: u32,
    /// MRS rather than MSR.
    pub read: bool,
    /// General register; 31 reads as zero and ignores writes.
    pub rt: u32,
}

impl SystemRegister {
    /// Decodes the ISS.
    #[must_use]
    #[inline(always)]
    pub const fn decode(iss: u32) -> Self {
        Self {
            encoding: iss & NAME,
            read: iss & 1 != 0,
            rt: iss >> 5 & 31,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syndromes_as_machines_report_them() {
        let access = SystemRegister::decode(crate::esr::Esr(0x623a_3016).iss());
        assert_eq!((access.encoding, access.rt), (ICC_SGI1R_EL1, 0));
        assert!(!access.read);
        let access = SystemRegister::decode(crate::esr::Esr(0x623e_3016).iss());
        assert_eq!(access.encoding, ICC_SGI0R_EL1);
    }

    #[test]
    fn every_field_has_its_own_bits() {
        for bit in 0..22 {
            let access = SystemRegister::decode(1 << bit);
            let fields = [access.encoding, u32::from(access.read), access.rt << 5];
            assert_eq!(fields.iter().sum::<u32>(), 1 << bit, "bit {bit}");
        }
    }
}
