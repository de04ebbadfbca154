// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why an instruction matters for samples and their paths.

use crate::Class;

/// The hypervisor's function that sends a guest's SGI by a store to GICD_SGIR, if `exits::fast_paths_version2` has no
/// path for the SGI.
pub const WRITE_SGIR: &str = "write_sgir";

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons(pub u16);

impl Reasons {
    /// No reasons.
    pub const NONE: Self = Self(0);
    /// The instruction reads the clock at the beginning of a sample.
    pub const BEGIN: Self = Self(1 << 0);
    /// The instruction reads the clock at the end of a sample.
    pub const END: Self = Self(1 << 1);
    /// The instruction follows one of the two clock reads, so the value is now in a register.
    pub const VALUE: Self = Self(1 << 2);
    /// The instruction belongs to the code that counts a sample.
    pub const RECORD: Self = Self(1 << 3);
    /// WFI, WFE, WFIT, WFET or YIELD: the emulator may continue with another CPU.
    pub const PAUSE: Self = Self(1 << 4);
    /// The instruction follows a pause.
    pub const RESUME: Self = Self(1 << 5);
    /// The instruction is an ordered, exclusive or atomic load or store, by which CPUs communicate.
    pub const SYNC: Self = Self(1 << 6);
    /// The instruction writes ICC_SGI1R_EL1 or GICD_SGIR.
    pub const SEND: Self = Self(1 << 7);
    /// The instruction reads ICC_IAR1_EL1 or GICC_IAR.
    pub const ACKNOWLEDGE: Self = Self(1 << 8);
    /// The instruction begins a cell, whose number is in x0.
    pub const CELL: Self = Self(1 << 9);

    /// The instruction is a pause that halts the CPU, unlike YIELD.
    pub const HALT: Self = Self(1 << 10);

    const CLASS: u32 = 13;

    /// `STR W5, [X3, #0xf00]`: our guest sends an SGI with this instruction on a machine with a GICv2.
    pub const STORES_SGIR: u32 = 0xb90f_0065;

    /// `STR W2, [X0, #0xf00]`: the hypervisor sends the SGI of such a guest with this instruction.
    pub const FORWARDS_SGIR: u32 = 0xb90f_0002;

    /// Whether `word` is `STR Wt, [Xn, #0xf00]` (DDI 0487K.a, C4.1.95): on a machine with a GICv2, our images and Linux send
    /// SGIs by this store to GICD_SGIR. Other code has hardly any store of a word to this offset; Debian's kernel 7.3.4
    /// has none.
    #[must_use]
    pub const fn stores_sgir(word: u32) -> bool {
        word & 0xffff_fc00 == 0xb90f_0000
    }

    /// Whether `word`, which sends an SGI, stores a word to GICD_SGIR, rather than writing ICC_SGI1R_EL1.
    #[must_use]
    pub const fn sends_by_store(word: u32) -> bool {
        word & 0xffc0_0000 == 0xb900_0000
    }

    /// Returns the kinds that follow from the instruction itself.
    #[must_use]
    pub const fn of_word(word: u32) -> Self {
        match word {
            0xd503_203f => return Self::PAUSE,
            0xd503_205f | 0xd503_207f => return Self::PAUSE.and(Self::HALT),
            _ => {}
        }
        // WFET and WFIT, and, with any register, MSR ICC_SGI1R_EL1 and MRS ICC_IAR1_EL1 (DDI 0487K.a, C4.1.94).
        match word & !0x1f {
            0xd503_1000 | 0xd503_1020 => return Self::PAUSE.and(Self::HALT),
            0xd518_cba0 => return Self::SEND,
            0xd538_cc00 => return Self::ACKNOWLEDGE,
            _ => {}
        }
        // Exclusive and ordered loads and stores, compare and swap, and atomic operations (C4.1.95).
        let ordered = word & 0x3f00_0000 == 0x0800_0000;
        let atomic = word & 0x3f20_0c00 == 0x3820_0000;
        if ordered || atomic {
            return Self::SYNC;
        }
        if Self::stores_sgir(word) {
            return Self::SEND;
        }
        Self::NONE
    }

    /// Whether `executed` is a branch (DDI 0487K.a, C6.2.26) that replaces `word`, which sends an SGI. Our guest
    /// replaces this instruction on a machine with a GICv2.
    #[must_use]
    pub const fn is_replaced_send(word: u32, executed: u32) -> bool {
        word & !0x1f == 0xd518_cba0 && executed >> 26 == 5
    }

    /// Returns the number of the register that has the value for ICC_SGI1R_EL1 or GICD_SGIR when `word` sends an SGI.
    #[must_use]
    pub const fn sgi_register(word: u32) -> u8 {
        (word & 0x1f) as u8
    }

    /// Returns the register into which `word` reads the clock. Returns `None` if `word` does not read the clock.
    #[must_use]
    pub const fn clock_register(word: u32) -> Option<u8> {
        // MRS Xt, CNTVCT_EL0
        if word & !0x1f == 0xd53b_e040 {
            Some((word & 0x1f) as u8)
        } else {
            None
        }
    }

    /// Returns the union of the two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set contains all reasons of `other`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the set with `class` as its bookkeeping class.
    #[must_use]
    pub const fn of_class(self, class: Class) -> Self {
        Self(self.0 & !(7 << Self::CLASS) | (class as u16 + 1) << Self::CLASS)
    }

    /// Returns the bookkeeping class of the set, or `None` if it has none.
    #[must_use]
    pub fn class(self) -> Option<Class> {
        let number = usize::from(self.0 >> Self::CLASS).checked_sub(1)?;
        Class::ALL.get(number).copied()
    }

    /// Whether these reasons require that each execution of the instruction is reported, in addition to being counted.
    #[must_use]
    pub const fn must_be_reported(self) -> bool {
        self.0 & ((1 << Self::CLASS) - 1) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_what_they_are() {
        for (word, kind) in [
            (0xd503_207f, Reasons::PAUSE.and(Reasons::HALT)), // wfi
            (0xd503_205f, Reasons::PAUSE.and(Reasons::HALT)), // wfe
            (0xd503_1015, Reasons::PAUSE.and(Reasons::HALT)), // wfet x21
            (0xd503_203f, Reasons::PAUSE),                    // yield
            (0xd503_201f, Reasons::NONE),                     // nop
            (0xd518_cba1, Reasons::SEND),                     // msr icc_sgi1r_el1, x1
            (0xb90f_0014, Reasons::SEND),                     // str w20, [x0, #0xf00]
            (0xb90f_0400, Reasons::NONE),                     // str w0, [x0, #0xf04]
            (0xf90f_0014, Reasons::NONE),                     // str x20, [x0, #0x1e00]
            (0xd538_cc00, Reasons::ACKNOWLEDGE),              // mrs x0, icc_iar1_el1
            (0x885f_fe34, Reasons::SYNC),                     // ldaxr w20, [x17]
            (0x8816_fe35, Reasons::SYNC),                     // stlxr w22, w21, [x17]
            (0x88df_fe34, Reasons::SYNC),                     // ldar w20, [x17]
            (0x089f_fc20, Reasons::SYNC),                     // stlrb w0, [x1]
            (0xb8e0_3041, Reasons::SYNC),                     // ldsetal w0, w1, [x2]
            (0xf940_1d54, Reasons::NONE),                     // ldr x20, [x10, #0x38]
            (0xa940_0440, Reasons::NONE),                     // ldp x0, x1, [x2]
            (0xb860_6841, Reasons::NONE),                     // ldr w1, [x2, x0]
        ] {
            assert_eq!(Reasons::of_word(word), kind, "{word:#010x}");
        }
        assert_eq!(Reasons::clock_register(0xd53b_e054), Some(20));
        assert_eq!(Reasons::clock_register(0xd53b_e034), None);
        assert_eq!(Reasons::sgi_register(0xd518_cba3), 3);
        assert!(!Reasons::sends_by_store(0xd518_cba3));
        for (word, register) in [(Reasons::STORES_SGIR, 5), (Reasons::FORWARDS_SGIR, 2)] {
            assert!(Reasons::stores_sgir(word) && Reasons::sends_by_store(word));
            assert_eq!(Reasons::sgi_register(word), register);
        }
    }

    #[test]
    fn a_class_is_no_event() {
        let kind = Reasons::SYNC.of_class(Class::Flags);
        assert_eq!(kind.class(), Some(Class::Flags));
        assert!(kind.must_be_reported() && kind.has(Reasons::SYNC));
        let kind = Reasons::NONE.of_class(Class::Statistics);
        assert!(!kind.must_be_reported() && kind.class() == Some(Class::Statistics));
        assert_eq!(Reasons::SYNC.class(), None);
    }
}
