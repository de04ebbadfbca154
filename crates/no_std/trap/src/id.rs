// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the values that a guest reads from the feature registers, ID_AA64PFR0_EL1 to
//! ID_AA64MMFR4_EL1 and their AArch32 companions (op0 3, op1 0, CRn 0, CRm 1 to 7; D24.3): the
//! CPU's features without the ones that EL2 withholds. A feature whose registers trap must stay
//! hidden, because a guest that uses it would take an UNDEFINED exception.
//!
//! Each field that the guest sees is listed here, so features of later versions of the architecture
//! stay hidden until they are added.

use crate::esr::encoding;

/// Returns the mask of the four-bit field whose lowest bit is `low`.
const fn field_mask(low: u32) -> u64 {
    0xf << low
}

/// The maximum of a field, if the CPU's value may be larger.
struct Limit {
    low: u32,
    most: u64,
}

/// A guest's view of a register: the fields in `shown`, some of them limited.
struct View {
    crm: u32,
    op2: u32,
    shown: u64,
    limits: &'static [Limit],
}

impl View {
    const fn new(crm: u32, op2: u32, shown: u64) -> Self {
        Self {
            crm,
            op2,
            shown,
            limits: &[],
        }
    }
}

/// DFR0.DoubleLock: there is no double lock.
const NO_DOUBLE_LOCK: u64 = 0xf << 36;

/// All registers that have fields to show.
const VIEWS: [View; 11] = [
    // PFR0: EL0 and EL1 in AArch64 only; FP, AdvSIMD, GIC, DIT, CSV2, CSV3. Hidden: EL2, EL3, RAS
    // (error records trap), SVE, SEL2, MPAM, AMU, RME.
    View {
        crm: 4,
        op2: 0,
        shown: field_mask(0)
            | field_mask(4)
            | field_mask(16)
            | field_mask(20)
            | field_mask(24)
            | field_mask(48)
            | field_mask(56)
            | field_mask(60),
        limits: &[Limit { low: 0, most: 1 }, Limit { low: 4, most: 1 }],
    },
    // PFR1: BT, SSBS, CSV2_frac. Hidden: MTE, SME, NMI, GCS, THE and the fractional fields of
    // features that PFR0 hides.
    View::new(4, 1, field_mask(0) | field_mask(4) | field_mask(32)),
    // DFR0: DebugVer, PMUVer, BRPs, WRPs, CTX_CMPs. Hidden: trace, SPE, BRBE.
    View::new(
        5,
        0,
        field_mask(0) | field_mask(8) | field_mask(12) | field_mask(20) | field_mask(28),
    ),
    // ISAR0: everything except TME.
    View::new(6, 0, !field_mask(24)),
    // ISAR1: everything except LS64.
    View::new(6, 1, !field_mask(60)),
    // ISAR2: WFxT, RPRES, GPA3, APA3, MOPS, BC, PAC_frac, CLRBHB, PRFMSLC, RPRFM, CSSC. Hidden:
    // 128-bit system registers and instructions.
    View::new(
        6,
        2,
        0x0fff_ffff | field_mask(28) | field_mask(40) | field_mask(48) | field_mask(52),
    ),
    // MMFR0: everything.
    View::new(7, 0, u64::MAX),
    // MMFR1: everything except limited ordering regions.
    View::new(7, 1, !field_mask(16)),
    // MMFR2: everything except nested virtualization.
    View::new(7, 2, !field_mask(24)),
    // MMFR3: Spec_FPACC. Hidden: features of TCR2_EL1 and SCTLR2_EL1, which trap.
    View::new(7, 3, field_mask(60)),
    // MMFR4: E2H0, which describes HCR_EL2 and does not matter to a guest at EL1.
    View::new(7, 4, field_mask(24)),
];

/// Whether `name` encodes one of this module's feature registers.
#[must_use]
pub const fn is_feature_register(name: u32) -> bool {
    let crm = name >> 1 & 15;
    let rest = name & !(7 << 17) & !(15 << 1);
    rest == encoding(3, 0, 0, 0, 0) && crm >= 1 && crm <= 7
}

/// Returns the value that the guest reads if the CPU has `value` in the feature register `name`.
#[must_use]
pub fn seen(name: u32, value: u64) -> u64 {
    let (crm, op2) = (name >> 1 & 15, name >> 17 & 7);
    let Some(view) = VIEWS.iter().find(|view| (view.crm, view.op2) == (crm, op2)) else {
        // The register is unallocated or completely hidden.
        return 0;
    };
    let mut seen = value & view.shown;
    for limit in view.limits {
        let most = limit.most << limit.low;
        if seen & field_mask(limit.low) > most {
            seen = seen & !field_mask(limit.low) | most;
        }
    }
    if (crm, op2) == (5, 0) {
        seen |= NO_DOUBLE_LOCK;
    }
    seen
}

/// Returns the value `seen` of the feature register `name` without ID_AA64ISAR2_EL1.MOPS, for a CPU
/// on which the memory copy instructions are UNDEFINED at EL1.
#[must_use]
pub const fn without_copies(name: u32, seen: u64) -> u64 {
    match name == encoding(3, 0, 0, 6, 2) {
        true => seen & !field_mask(16),
        false => seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PFR0: u32 = encoding(3, 0, 0, 4, 0);
    const DFR0: u32 = encoding(3, 0, 0, 5, 0);

    #[test]
    fn which_registers_they_are() {
        assert!(is_feature_register(PFR0));
        assert!(is_feature_register(encoding(3, 0, 0, 7, 7)));
        assert!(!is_feature_register(encoding(3, 0, 0, 0, 5)));
        assert!(!is_feature_register(encoding(3, 0, 0, 8, 0)));
        assert!(!is_feature_register(encoding(3, 3, 0, 4, 0)));
        assert!(!is_feature_register(encoding(2, 0, 0, 4, 0)));
    }

    #[test]
    fn copies_go_from_their_register_alone() {
        let isar2 = encoding(3, 0, 0, 6, 2);
        assert_eq!(without_copies(isar2, 0x1_2345), 0x0_2345 & !(0xf << 16));
        assert_eq!(without_copies(isar2, 0xf_ffff), 0xffff);
        assert_eq!(without_copies(PFR0, 0xf_ffff), 0xf_ffff);
    }

    #[test]
    fn what_traps_is_not_announced() {
        // The value here is that of QEMU's `max`.
        let pfr0 = seen(PFR0, 0x1301_0011_2111_0222);
        assert_eq!(pfr0, 0x1301_0000_0111_0011);
        assert_eq!(seen(encoding(3, 0, 0, 4, 4), u64::MAX), 0);
        assert_eq!(seen(DFR0, 0) >> 36 & 0xf, 0xf);
    }

    #[test]
    fn what_measurements_ask_for_stays() {
        for (crm, op2) in [(6, 2), (7, 0), (7, 1)] {
            let name = encoding(3, 0, 0, crm, op2);
            // WFxT; ECV and FGT; VH and TWED.
            let asked = [0xf, 0xff << 56, 0xf << 8 | 0xf << 32][[(6, 2), (7, 0), (7, 1)]
                .iter()
                .position(|one| *one == (crm, op2))
                .unwrap()];
            assert_eq!(seen(name, asked), asked);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_added(crm in 1u32..8, op2 in 0u32..8, value in any::<u64>()) {
            let name = encoding(3, 0, 0, crm, op2);
            let extra = if name == DFR0 { NO_DOUBLE_LOCK } else { 0 };
            for low in (0..64).step_by(4) {
                let seen = seen(name, value) & !extra & field_mask(low);
                prop_assert!(seen <= value & field_mask(low));
            }
        }
    }
}
