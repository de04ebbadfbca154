// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the features of the machine, from its ID registers.

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, Readable};
use arch::regs::ID_AA64ISAR2_EL1;
use spin::once::Once;

/// Architecture features that a way of waiting may use.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// FEAT_WFxT: WFET and WFIT.
    pub wfxt: bool,
    /// FEAT_LSE: atomic instructions.
    pub lse: bool,
    /// FEAT_ECV: among other things, slower event streams.
    pub ecv: bool,
    /// FEAT_VHE.
    pub vhe: bool,
    /// FEAT_FGT.
    pub fgt: bool,
    /// FEAT_TWED: delayed trapping of WFE.
    pub twed: bool,
}

impl Features {
    /// Returns the names of the features, and whether each is there.
    pub const fn list(&self) -> [(&'static str, bool); 6] {
        [
            ("wfxt", self.wfxt),
            ("lse", self.lse),
            ("ecv", self.ecv),
            ("vhe", self.vhe),
            ("fgt", self.fgt),
            ("twed", self.twed),
        ]
    }
}

static FEATURES: Once<Features> = Once::new();

/// Returns the features of this machine, from the ID registers (DDI 0487K.a, D23.2.66 on).
pub fn features() -> &'static Features {
    FEATURES.call_once(|| {
        let mmfr0 = ID_AA64MMFR0_EL1.get();
        let mmfr1 = ID_AA64MMFR1_EL1.get();
        Features {
            wfxt: ID_AA64ISAR2_EL1.get() & 0xf >= 2,
            lse: arch::id::has_lse(),
            ecv: mmfr0 >> 60 & 0xf != 0,
            fgt: mmfr0 >> 56 & 0xf != 0,
            vhe: mmfr1 >> 8 & 0xf != 0,
            twed: mmfr1 >> 32 & 0xf != 0,
        }
    })
}
