// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trapped system registers (ISS of class 0x18, D23.2.39).

use crate::esr::encoding;
use crate::id::is_feature_register;

/// ICC_SGI1R_EL1.
pub const ICC_SGI1R_EL1: u32 = encoding(3, 0, 12, 11, 5);
/// ICC_ASGI1R_EL1.
pub const ICC_ASGI1R_EL1: u32 = encoding(3, 0, 12, 11, 6);
/// ICC_SGI0R_EL1.
pub const ICC_SGI0R_EL1: u32 = encoding(3, 0, 12, 11, 7);

/// What a trapped access to another register ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A read gives this, a write is ignored.
    Constant(u64),
    /// A read gives what [`crate::id::seen`] leaves of it.
    Feature,
    /// The OS lock, which is the guest's own.
    OsLock,
    /// There is no such register.
    Undefined,
}

/// What `access` ends in.
#[must_use]
pub fn answer(access: SystemRegister) -> Answer {
    match access.encoding {
        // System registers on, bypass off, whatever is written: there is no
        // other interface (IHI 0069H, 12.2, ICC_SRE_EL1).
        ICC_SRE_EL1 => Answer::Constant(0b111),
        // This CPU has neither bits of its own there nor power of its own.
        ACTLR_EL1 | OSDLR_EL1 | DBGPRCR_EL1 => Answer::Constant(0),
        MDRAR_EL1 if access.read => Answer::Constant(0),
        // SGIs of Group 0 and of the secure Group 1: this guest has neither, and
        // a write that selects no CPU is ignored (IHI 0069H, 12.2).
        ICC_SGI0R_EL1 | ICC_ASGI1R_EL1 if !access.read => Answer::Constant(0),
        OSLAR_EL1 if !access.read => Answer::OsLock,
        OSLSR_EL1 if access.read => Answer::OsLock,
        name if access.read && is_feature_register(name) => Answer::Feature,
        _ => Answer::Undefined,
    }
}

/// Whether it is one of the registers of the interrupt controller's CPU interface
/// that ICH_HCR_EL2.TALL1 traps (IHI 0069H, 12.4.5): ICC_AP1R0_EL1 to ICC_AP1R3_EL1,
/// ICC_IAR1_EL1, ICC_EOIR1_EL1, ICC_HPPIR1_EL1, ICC_BPR1_EL1 and ICC_IGRPEN1_EL1.
#[must_use]
pub const fn is_group1(encoding: u32) -> bool {
    const AP1R0: u32 = crate::esr::encoding(3, 0, 12, 9, 0);
    const AP1R3: u32 = crate::esr::encoding(3, 0, 12, 9, 3);
    const IAR1: u32 = crate::esr::encoding(3, 0, 12, 12, 0);
    const EOIR1: u32 = crate::esr::encoding(3, 0, 12, 12, 1);
    const HPPIR1: u32 = crate::esr::encoding(3, 0, 12, 12, 2);
    const BPR1: u32 = crate::esr::encoding(3, 0, 12, 12, 3);
    const IGRPEN1: u32 = crate::esr::encoding(3, 0, 12, 12, 7);
    // op2 counts the four: it lies above everything else that names them.
    encoding >= AP1R0 && encoding <= AP1R3 && (encoding - AP1R0).is_multiple_of(1 << 17)
        || matches!(encoding, IAR1 | EOIR1 | HPPIR1 | BPR1 | IGRPEN1)
}

/// The bits of the ISS that name the register: all but direction and Rt.
const NAME: u32 = 0x3f_fc1e;

/// ICC_SRE_EL1.
const ICC_SRE_EL1: u32 = encoding(3, 0, 12, 12, 5);
/// ACTLR_EL1.
const ACTLR_EL1: u32 = encoding(3, 0, 1, 0, 1);
/// MDRAR_EL1: where the debug ROM is.
const MDRAR_EL1: u32 = encoding(2, 0, 1, 0, 0);
/// OSLAR_EL1 and OSLSR_EL1: the OS lock.
const OSLAR_EL1: u32 = encoding(2, 0, 1, 0, 4);
const OSLSR_EL1: u32 = encoding(2, 0, 1, 1, 4);
/// OSDLR_EL1: the OS double lock.
const OSDLR_EL1: u32 = encoding(2, 0, 1, 3, 4);
/// DBGPRCR_EL1: power requests of a debugger.
const DBGPRCR_EL1: u32 = encoding(2, 0, 1, 4, 4);

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
