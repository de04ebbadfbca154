// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data aborts taken from the guest (ISS of class 0x24, D23.2.39).

use crate::esr::Esr;

/// Mask of the fault status (DFSC) without its level, and the masked value of a translation fault.
const DFSC: u32 = 0x3c;
const TRANSLATION: u32 = 0x04;

/// A load or store that the syndrome describes completely (ISV = 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether the access is a store rather than a load.
    pub write: bool,
    /// Number of the general register; 31 is the zero register.
    pub register: u32,
    pub(crate) sign_extend: bool,
    pub(crate) sixty_four: bool,
}

impl Access {
    /// Decodes the ISS of a translation fault; returns `None` for any other fault, or if the ISS
    /// does not describe the access.
    #[must_use]
    pub const fn decode(esr: Esr) -> Option<Self> {
        /// ISV: the other fields are valid. S1PTW: a table walk faulted.
        const ISV: u32 = 1 << 24;
        const S1PTW: u32 = 1 << 7;
        let iss = esr.iss();
        if iss & (ISV | S1PTW | DFSC) != ISV | TRANSLATION {
            return None;
        }
        Some(Self {
            size: 1 << (iss >> 22 & 3),
            sign_extend: iss & 1 << 21 != 0,
            register: iss >> 16 & 31,
            sixty_four: iss & 1 << 15 != 0,
            write: iss & 1 << 6 != 0,
        })
    }

    /// Returns the value that a load writes to its register if memory holds `raw`.
    #[must_use]
    pub const fn loaded(&self, raw: u64) -> u64 {
        let unused = 64 - 8 * self.size;
        if !self.sign_extend {
            // A zero-extended value is the same in a W register and in an X register.
            return raw << unused >> unused;
        }
        let value = ((raw << unused) as i64 >> unused) as u64;
        if self.sixty_four {
            value
        } else {
            value & 0xffff_ffff
        }
    }

    /// Returns the value that a store writes to memory if its register holds `value`.
    #[must_use]
    pub const fn stored(&self, value: u64) -> u64 {
        let unused = 64 - 8 * self.size;
        value << unused >> unused
    }
}

/// Whether the abort is a stage-2 translation fault, the only fault with an address: for other
/// faults, HPFAR_EL2 is not valid (D24.2.64).
#[must_use]
pub const fn is_translation_fault(esr: Esr) -> bool {
    esr.iss() & DFSC == TRANSLATION
}

/// Whether cache maintenance, and not a load or store, caused the abort (CM).
#[must_use]
pub const fn is_maintenance(esr: Esr) -> bool {
    esr.iss() & 1 << 8 != 0
}

/// Whether a store caused the abort, provided that a load or store did (WnR).
#[must_use]
pub const fn is_write(esr: Esr) -> bool {
    esr.iss() & 1 << 6 != 0
}

/// Whether the guest's own table walk faulted (S1PTW).
#[must_use]
pub const fn is_table_walk(esr: Esr) -> bool {
    esr.iss() & 1 << 7 != 0
}

/// Returns the guest physical address of a stage-2 fault: HPFAR_EL2.FIPA (43:4) has the page, and
/// FAR_EL2 has the offset within it (D23.2.58).
#[must_use]
pub const fn address(hpfar: u64, far: u64) -> u64 {
    (hpfar >> 4 & 0xff_ffff_ffff) << 12 | far & 0xfff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_extended_byte_to_a_word_register() {
        let access = Access::decode(Esr(1 << 24 | 1 << 21 | 3 << 16 | 4)).unwrap();
        assert_eq!((access.size, access.register, access.write), (1, 3, false));
        assert_eq!(access.loaded(0x1_80), 0xffff_ff80);
    }

    #[test]
    fn a_doubleword_store() {
        let access = Access::decode(Esr(1 << 24 | 3 << 22 | 1 << 15 | 1 << 6 | 4)).unwrap();
        assert!(access.write);
        assert_eq!(access.stored(u64::MAX), u64::MAX);
        assert_eq!(access.loaded(u64::MAX), u64::MAX);
    }

    #[test]
    fn without_isv_there_is_no_access() {
        assert_eq!(Access::decode(Esr(0)), None);
        assert_eq!(Access::decode(Esr(1 << 24 | 1 << 7 | 4)), None);
        assert_eq!(Access::decode(Esr(1 << 24)), None, "another fault");
    }

    #[test]
    fn other_faults_have_no_address() {
        assert!(is_translation_fault(Esr(0x93c0_0007)));
        assert!(!is_translation_fault(Esr(0x93c0_0021)));
        assert!(is_table_walk(Esr(0x9200_0087)) && !is_table_walk(Esr(0x9200_0007)));
    }

    #[test]
    fn the_address_has_its_offset() {
        assert_eq!(
            address(0x0800_0000 >> 8, 0xffff_0000_0000_0123),
            0x0800_0123
        );
    }
}
