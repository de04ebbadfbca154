// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulates the registers of a GICv3's CPU interfaces on a GICv2: EL2's own interface (GICC), and
//! the controls of the guest's interface (GICH; IHI 0048B, chapters 4 and 5). Values have GICv3's format.

/// Bits of GICH_LR (5.3.8): HW (31), Grp1 (30), State (29:28), Priority (27:23), PhysicalID (19:10), VirtualID
/// (9:0). Without HW, PhysicalID has EOI (19) and an SGI's sender, CPUID (12:10).
#[cfg(any(test, target_arch = "aarch64"))]
const fn to_gich(value: u64) -> u32 {
    let upper = (value >> 32) as u32;
    let state = (upper >> 30) << 28;
    let hw = (upper >> 29 & 1) << 31;
    // A priority has five bits here, so bit 0 is free to hold the group (`vgic::version2`).
    let group = (upper >> 16 & 1) << 30;
    let priority = (upper >> 19 & 0x1f) << 23;
    hw | group | state | priority | (upper & 0x3ff) << 10 | value as u32 & 0x3ff
}

/// The reverse of [`to_gich`].
#[cfg(any(test, target_arch = "aarch64"))]
const fn from_gich(value: u32) -> u64 {
    /// ICH_LR.Group of every interrupt in use, as `vgic` sets it.
    const GROUP1: u32 = 1 << 28;
    let state = (value >> 28 & 3) << 30;
    let hw = (value >> 31) << 29;
    let priority = (value >> 23 & 0x1f) << 19 | (value >> 30 & 1) << 16;
    let upper = state | hw | priority | value >> 10 & 0x3ff;
    let upper = if value == 0 { 0 } else { upper | GROUP1 };
    (upper as u64) << 32 | (value & 0x3ff) as u64
}

/// Marks an SGI among the INTIDs that `read` returns for ICC_IAR1_EL1: EL2 has to know its sender.
pub const SGI: u32 = 1 << 13;

/// An SGI that EL2 has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgi {
    /// Its INTID.
    pub intid: u32,
    /// The CPU interface that sent it.
    pub sender: u32,
}

impl Sgi {
    /// Returns the SGI in `acknowledged`, a value read from ICC_IAR1_EL1, if a GICv2 acknowledged one.
    #[must_use]
    pub const fn acknowledged(acknowledged: u32) -> Option<Self> {
        if acknowledged & SGI == 0 {
            return None;
        }
        Some(Self {
            intid: acknowledged & 0xf,
            sender: acknowledged >> 10 & 7,
        })
    }
}

#[cfg(target_arch = "aarch64")]
pub use access::{read, write};

#[cfg(target_arch = "aarch64")]
mod access {
    use arch::gicv2::REGISTERS;
    use arch::regs::{LIST_REGISTERS, Register};
    use core::sync::atomic::AtomicU64;
    use core::sync::atomic::Ordering::{Acquire, Relaxed};

    use super::{SGI, from_gich, to_gich};
    use crate::mmio::{load_32, store_32};
    use crate::version2::BYPASS;

    const GICC_CTLR: u64 = 0x0;
    const GICC_PMR: u64 = 0x4;
    const GICC_BPR: u64 = 0x8;
    const GICC_IAR: u64 = 0xc;
    const GICC_EOIR: u64 = 0x10;
    const GICC_RPR: u64 = 0x14;
    const GICC_APR: u64 = 0xd0;
    const GICC_DIR: u64 = 0x1000;
    /// GICC_CTLR (4.4.1): the enable of this level's group (0), and EOImode (9) of this level.
    const ENABLE: u32 = 1 << 0;
    const SPLIT: u32 = 1 << 9;

    const GICH_HCR: u64 = 0x0;
    const GICH_VTR: u64 = 0x4;
    const GICH_VMCR: u64 = 0x8;
    const GICH_EISR0: u64 = 0x20;
    const GICH_ELRSR0: u64 = 0x30;
    const GICH_APR: u64 = 0xf0;
    const GICH_LR: u64 = 0x100;
    /// GICH_HCR (5.3.1): everything but EOICount.
    const HCR: u64 = 0xff;
    /// Maximum number of list registers used, less 1 (ListRegs): a GICv3 has at most 16.
    const MOST: u64 = 15;

    fn load(base: &AtomicU64, offset: u64) -> u32 {
        // SAFETY: `enable_distributor` recorded the registers, which the hypervisor has mapped; each
        // is this CPU's own.
        unsafe { load_32(base.load(Relaxed) + offset) }
    }

    fn store(base: &AtomicU64, offset: u64, value: u32) {
        // SAFETY: as above.
        unsafe { store_32(base.load(Relaxed) + offset, value) }
    }

    /// Reads the register numbered `number` (`arch::regs::Register`).
    #[must_use]
    pub fn read(number: u32) -> u64 {
        let (gicc, gich) = (&REGISTERS.interface, &REGISTERS.control);
        if let Some(n) = number.checked_sub(LIST_REGISTERS) {
            return from_gich(load(gich, GICH_LR + 4 * u64::from(n)));
        }
        let value = match Register::ALL[number as usize] {
            Register::ICC_IAR1_EL1 => {
                let iar = load(gicc, GICC_IAR);
                // The handler sees what the sender stored before the SGI.
                core::sync::atomic::fence(Acquire);
                match iar & 0x3ff {
                    0..16 => iar & 0x1fff | SGI,
                    intid => intid,
                }
            }
            Register::ICC_RPR_EL1 => load(gicc, GICC_RPR),
            Register::ICC_PMR_EL1 => load(gicc, GICC_PMR),
            Register::ICC_BPR1_EL1 => load(gicc, GICC_BPR),
            // EOImode (1) and PRIbits (10:8): five bits, the minimum of a GICv2 with GICH.
            Register::ICC_CTLR_EL1 => (load(gicc, GICC_CTLR) & SPLIT) >> 8 | 4 << 8,
            Register::ICC_IGRPEN1_EL1 => load(gicc, GICC_CTLR) & ENABLE,
            Register::ICH_VTR_EL2 => {
                let vtr = load(gich, GICH_VTR);
                vtr & 0xfc00_0000 | (vtr & 0x3f).min(MOST as u32)
            }
            Register::ICH_HCR_EL2 => load(gich, GICH_HCR) & HCR as u32,
            Register::ICH_VMCR_EL2 => load(gich, GICH_VMCR),
            Register::ICH_EISR_EL2 => load(gich, GICH_EISR0),
            Register::ICH_ELRSR_EL2 => load(gich, GICH_ELRSR0),
            Register::ICH_AP1R0_EL2 => load(gich, GICH_APR),
            _ => 0,
        };
        value.into()
    }

    /// Writes the register numbered `number`. A write of a register that a GICv2 lacks has no effect.
    pub fn write(number: u32, value: u64) {
        let (gicc, gich) = (&REGISTERS.interface, &REGISTERS.control);
        if let Some(n) = number.checked_sub(LIST_REGISTERS) {
            return store(gich, GICH_LR + 4 * u64::from(n), to_gich(value));
        }
        let word = value as u32;
        // Of firmware's bits, only the bypass bits stay: with FIQEn, Group 0 would arrive as FIQs.
        let change = |clear: u32, set: u32| {
            let known = load(gicc, GICC_CTLR) & (BYPASS | SPLIT | ENABLE);
            store(gicc, GICC_CTLR, known & !clear | set);
        };
        match Register::ALL[number as usize] {
            // The end of an SGI names its sender (IHI 0048B, 4.4.5).
            Register::ICC_EOIR1_EL1 => store(gicc, GICC_EOIR, word & 0x1fff),
            Register::ICC_DIR_EL1 => store(gicc, GICC_DIR, word & 0x1fff),
            Register::ICC_PMR_EL1 => store(gicc, GICC_PMR, word),
            Register::ICC_BPR1_EL1 => store(gicc, GICC_BPR, word),
            Register::ICC_CTLR_EL1 => change(SPLIT, (word & 2) << 8),
            Register::ICC_IGRPEN1_EL1 => change(ENABLE, word & 1),
            // Active priorities are only ever cleared: those of both groups, GICC_APR and GICC_NSAPR.
            Register::ICC_AP1R0_EL1 => (0..8).for_each(|n| store(gicc, GICC_APR + 4 * n, word)),
            Register::ICH_HCR_EL2 => store(gich, GICH_HCR, (value & HCR) as u32),
            Register::ICH_VMCR_EL2 => store(gich, GICH_VMCR, word),
            Register::ICH_AP1R0_EL2 => store(gich, GICH_APR, word),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_a_list_register_has_its_place() {
        // Pending, in ICH_LR's Group 1; priority 0x80, whose bit 0 means Group 0; INTID 27, mapped to itself.
        let timer = 1 << 62 | 1 << 60 | 1 << 61 | 0x80 << 48 | 27 << 32 | 27;
        assert_eq!(
            to_gich(timer),
            1 << 31 | 1 << 28 | 0x10 << 23 | 27 << 10 | 27
        );
        // Active and pending, of Group 1: SGI 3 from interface 5, with a request to signal its end.
        let sgi = 3 << 62 | 1 << 60 | 0x61 << 48 | 1 << 41 | 5 << 32 | 3;
        let gich = 1 << 30 | 3 << 28 | 0xc << 23 | 1 << 19 | 5 << 10 | 3;
        assert_eq!(to_gich(sgi), gich);
        for value in [timer, sgi, 0] {
            assert_eq!(from_gich(to_gich(value)), value);
        }
        // Every bit of the register survives, except the reserved ones (22:20).
        for bit in (0..32).filter(|bit| !(20..23).contains(bit)) {
            assert_eq!(to_gich(from_gich(1 << bit)), 1 << bit, "bit {bit}");
        }
    }

    #[test]
    fn an_sgi_keeps_its_sender() {
        let sgi = Sgi {
            intid: 6,
            sender: 7,
        };
        assert_eq!(Sgi::acknowledged(SGI | 7 << 10 | 6), Some(sgi));
        assert_eq!(Sgi::acknowledged(27), None);
        assert_eq!(Sgi::acknowledged(1023), None);
    }
}
