// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes trapped accesses to system registers (ISS of class 0x18, D23.2.39).

use crate::esr::encoding;
use crate::id::is_feature_register;
use crate::interface::Register;

/// ICC_SGI1R_EL1.
pub const ICC_SGI1R_EL1: u32 = encoding(3, 0, 12, 11, 5);
/// ICC_ASGI1R_EL1.
pub const ICC_ASGI1R_EL1: u32 = encoding(3, 0, 12, 11, 6);
/// ICC_SGI0R_EL1.
pub const ICC_SGI0R_EL1: u32 = encoding(3, 0, 12, 11, 7);

/// The result of a trapped access to a register other than ICC_SGI1R_EL1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A read returns a fixed value; a write is ignored.
    Constant(u64),
    /// A read returns the CPU's value as filtered by [`crate::id::seen`].
    Feature,
    /// The access goes to the guest's own OS lock.
    OsLock,
    /// The virtual interrupt controller handles the access.
    Interface(Register),
    /// There is no such register.
    Undefined,
}

/// Returns the result of `access`.
#[must_use]
pub fn answer(access: SystemRegister) -> Answer {
    match access.encoding {
        // A read returns "system registers on, bypass off", whatever was written: there is no other
        // interface (IHI 0069H, 12.2, ICC_SRE_EL1).
        ICC_SRE_EL1 => Answer::Constant(0b111),
        // This CPU implements no bits in these registers, and no power control.
        ACTLR_EL1 | OSDLR_EL1 | DBGPRCR_EL1 => Answer::Constant(0),
        MDRAR_EL1 if access.read => Answer::Constant(0),
        // These registers send SGIs of Group 0 and of the secure Group 1. This guest has neither group, and a
        // write that selects no CPU is ignored (IHI 0069H, 12.2).
        ICC_SGI0R_EL1 | ICC_ASGI1R_EL1 if !access.read => Answer::Constant(0),
        // There is no Group 0: nothing to acknowledge or enable, and no active priority.
        ICC_IAR0_EL1 | ICC_HPPIR0_EL1 if access.read => Answer::Constant(1023),
        ICC_EOIR0_EL1 if !access.read => Answer::Constant(0),
        ICC_IGRPEN0_EL1 | ICC_AP0R0_EL1 | ICC_AP0R1_EL1 | ICC_AP0R2_EL1 | ICC_AP0R3_EL1 => {
            Answer::Constant(0)
        }
        OSLAR_EL1 if !access.read => Answer::OsLock,
        OSLSR_EL1 if access.read => Answer::OsLock,
        name if access.read && is_feature_register(name) => Answer::Feature,
        name => match Register::named(name) {
            Some(register) => Answer::Interface(register),
            None => Answer::Undefined,
        },
    }
}

/// Registers of Group 0.
const ICC_IAR0_EL1: u32 = encoding(3, 0, 12, 8, 0);
const ICC_EOIR0_EL1: u32 = encoding(3, 0, 12, 8, 1);
const ICC_HPPIR0_EL1: u32 = encoding(3, 0, 12, 8, 2);
const ICC_AP0R0_EL1: u32 = encoding(3, 0, 12, 8, 4);
const ICC_AP0R1_EL1: u32 = encoding(3, 0, 12, 8, 5);
const ICC_AP0R2_EL1: u32 = encoding(3, 0, 12, 8, 6);
const ICC_AP0R3_EL1: u32 = encoding(3, 0, 12, 8, 7);
const ICC_IGRPEN0_EL1: u32 = encoding(3, 0, 12, 12, 6);

/// The bits of the ISS that encode the register: all except the direction and Rt.
const NAME: u32 = 0x3f_fc1e;

/// ICC_SRE_EL1.
const ICC_SRE_EL1: u32 = encoding(3, 0, 12, 12, 5);
/// ACTLR_EL1.
const ACTLR_EL1: u32 = encoding(3, 0, 1, 0, 1);
/// MDRAR_EL1: the address of the debug ROM.
const MDRAR_EL1: u32 = encoding(2, 0, 1, 0, 0);
/// OSLAR_EL1 and OSLSR_EL1: the OS lock.
const OSLAR_EL1: u32 = encoding(2, 0, 1, 0, 4);
const OSLSR_EL1: u32 = encoding(2, 0, 1, 1, 4);
/// OSDLR_EL1: the OS double lock.
const OSDLR_EL1: u32 = encoding(2, 0, 1, 3, 4);
/// DBGPRCR_EL1: power requests of a debugger.
const DBGPRCR_EL1: u32 = encoding(2, 0, 1, 4, 4);

/// A trapped access to a system register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemRegister {
    /// The register, as encoded by [`encoding`].
    pub encoding: u32,
    /// Whether the access is MRS rather than MSR.
    pub read: bool,
    /// Number of the general register; 31 reads as zero and ignores writes.
    pub rt: u32,
}

impl SystemRegister {
    /// Decodes the ISS of a trapped access.
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
    fn who_has_no_register_gets_an_exception() {
        let access = |encoding, read| SystemRegister {
            encoding,
            read,
            rt: 0,
        };
        let feature = encoding(3, 0, 0, 4, 0);
        assert_eq!(answer(access(feature, true)), Answer::Feature);
        assert_eq!(answer(access(feature, false)), Answer::Undefined);
        assert_eq!(answer(access(OSLAR_EL1, true)), Answer::Undefined);
        assert_eq!(answer(access(ACTLR_EL1, true)), Answer::Constant(0));
        assert_eq!(answer(access(ACTLR_EL1, false)), Answer::Constant(0));
        assert_eq!(answer(access(ICC_SGI1R_EL1, true)), Answer::Undefined);
        assert_eq!(
            answer(access(encoding(3, 0, 15, 1, 0), true)),
            Answer::Undefined
        );
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
