// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules by which a claim is judged; `docs/experiments.md` has them in words.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// What our numbers say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// They say the same.
    Agrees,
    /// The direction is the source's, the size is outside of the band.
    DirectionOnly,
    /// The effect is within the spread between our boots.
    NoDifference,
    /// They say something else.
    Differs,
    /// The machine does not model what the claim is about.
    NotModelled,
}

impl Verdict {
    /// All of them, in the order of a summary.
    pub const ALL: [Self; 5] = [
        Self::Agrees,
        Self::DirectionOnly,
        Self::NoDifference,
        Self::Differs,
        Self::NotModelled,
    ];

    /// As it is written in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::DirectionOnly => "direction only",
            Self::NoDifference => "no difference",
            Self::Differs => "differs",
            Self::NotModelled => "not modelled",
        }
    }

    /// As it is shown: what contradicts the source stands out.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Differs => "DIFFERS",
            other => other.word(),
        }
    }

    /// Whether our numbers agree; `None` where they say nothing.
    pub const fn agrees(self) -> Option<bool> {
        match self {
            Self::Agrees => Some(true),
            Self::DirectionOnly | Self::NoDifference | Self::Differs => Some(false),
            Self::NotModelled => None,
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

/// How many there are of each verdict.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<Verdict, usize>);

impl Counts {
    /// Counts them; every verdict has a number.
    pub fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let mut counts = Self(Verdict::ALL.map(|verdict| (verdict, 0)).into());
        verdicts.for_each(|verdict| *counts.0.entry(verdict).or_default() += 1);
        counts
    }

    /// In a line.
    pub fn line(&self) -> String {
        let all: usize = self.0.values().sum();
        let each = self.0.iter();
        let each: Vec<String> = each
            .map(|(verdict, count)| format!("{} {count}", verdict.word()))
            .collect();
        format!("{all} claims: {}", each.join(", "))
    }
}

/// What is tested of an effect. Effects are per cent of the second of two figures
/// that are compared, or their difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Test {
    /// A change goes this way.
    Sign { way: Way },
    /// The first is below the second.
    Order,
    /// The effect is `expected`, `band` more or less.
    Size { expected: f64, band: f64 },
    /// There is no effect beyond `band`, in no boot.
    Equality { band: f64 },
}

/// A way that a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Falls,
    Rises,
}

/// The verdict of `test` on the effects of all boots; an effect below `least` is none.
pub fn judge(test: Test, effects: &[f64], least: f64) -> Verdict {
    let expected = match test {
        Test::Equality { band } => {
            return match effects.iter().all(|effect| effect.abs() <= band) {
                true => Verdict::Agrees,
                false => Verdict::Differs,
            };
        }
        Test::Sign { way: Way::Rises } => 1.0,
        Test::Sign { way: Way::Falls } | Test::Order => -1.0,
        Test::Size { expected, .. } => expected,
    };
    let Some(effect) = distinct(effects, least) else {
        return Verdict::NoDifference;
    };
    match test {
        _ if effect * expected <= 0.0 => Verdict::Differs,
        Test::Size { expected, band } if (effect - expected).abs() > band => Verdict::DirectionOnly,
        _ => Verdict::Agrees,
    }
}

/// The median effect, if it can be told from none: all boots have its sign, and it is
/// no smaller than the spread between them and than `least`.
fn distinct(effects: &[f64], least: f64) -> Option<f64> {
    let median = significance::median(effects)?;
    let same_sign = effects.iter().all(|effect| effect * median > 0.0);
    let large = median.abs() >= spread(effects).max(least);
    (same_sign && large).then_some(median)
}

/// From the smallest to the largest.
fn spread(effects: &[f64]) -> f64 {
    let least = effects.iter().copied().fold(f64::INFINITY, f64::min);
    let most = effects.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Effects that have no size are equal.
    if least == most { 0.0 } else { most - least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HALF: Test = Test::Size {
        expected: -50.0,
        band: 10.0,
    };
    const RISES: Test = Test::Sign { way: Way::Rises };
    const FALLS: Test = Test::Sign { way: Way::Falls };

    fn judged(test: Test, effects: &[f64]) -> Verdict {
        judge(test, effects, 0.0)
    }

    #[test]
    fn an_effect_below_what_the_source_can_tell_is_none() {
        let verdict = |least| judge(RISES, &[0.3, 0.31, 0.29], least);
        assert_eq!(verdict(0.3), Verdict::Agrees);
        assert_eq!(verdict(0.301), Verdict::NoDifference);
        let equal = Test::Equality { band: 0.1 };
        assert_eq!(judge(equal, &[0.3], 1.0), Verdict::Differs);
    }

    #[test]
    fn an_order_has_to_hold_in_every_boot() {
        assert_eq!(judged(Test::Order, &[-3.0, -4.0, -3.5]), Verdict::Agrees);
        assert_eq!(judged(Test::Order, &[3.0, 4.0, 3.5]), Verdict::Differs);
        assert_eq!(
            judged(Test::Order, &[-3.0, 4.0, -3.5]),
            Verdict::NoDifference
        );
        assert_eq!(judged(Test::Order, &[0.0, 0.0, 0.0]), Verdict::NoDifference);
        assert_eq!(judged(RISES, &[3.0, 4.0, 3.5]), Verdict::Agrees);
        assert_eq!(judged(FALLS, &[3.0, 4.0, 3.5]), Verdict::Differs);
    }

    #[test]
    fn an_effect_below_the_spread_of_the_boots_is_none() {
        assert_eq!(judged(FALLS, &[-1.0, -3.0, -10.0]), Verdict::NoDifference);
        assert_eq!(judged(FALLS, &[-5.0, -7.0, -10.0]), Verdict::Agrees);
        assert_eq!(judged(HALF, &[-5.0, -50.0, -100.0]), Verdict::NoDifference);
    }

    #[test]
    fn a_size_outside_of_its_band_is_a_direction_only() {
        assert_eq!(judged(HALF, &[-41.0, -42.0, -39.0]), Verdict::Agrees);
        assert_eq!(judged(HALF, &[-39.0, -38.0, -39.0]), Verdict::DirectionOnly);
        assert_eq!(judged(HALF, &[-65.0]), Verdict::DirectionOnly);
        assert_eq!(judged(HALF, &[50.0]), Verdict::Differs);
        assert_eq!(judged(HALF, &[0.0]), Verdict::NoDifference);
    }

    #[test]
    fn equality_is_broken_by_one_boot() {
        let equal = Test::Equality { band: 2.0 };
        assert_eq!(judged(equal, &[-2.0, 0.0, 2.0]), Verdict::Agrees);
        assert_eq!(judged(equal, &[-2.0, 0.0, 2.1]), Verdict::Differs);
        assert_eq!(judged(equal, &[f64::INFINITY]), Verdict::Differs);
    }

    #[test]
    fn what_was_not_there_before_is_infinitely_more() {
        assert_eq!(judged(RISES, &[f64::INFINITY; 3]), Verdict::Agrees);
        assert_eq!(judged(FALLS, &[f64::INFINITY; 3]), Verdict::Differs);
    }

    #[test]
    fn every_verdict_is_counted() {
        let counts = Counts::of([Verdict::Agrees, Verdict::Agrees, Verdict::Differs].into_iter());
        assert_eq!(
            counts.line(),
            "3 claims: agrees 2, direction only 0, no difference 0, differs 1, not modelled 0"
        );
        assert!(
            serde_json::to_string(&counts)
                .unwrap()
                .contains("\"differs\":1")
        );
    }

    proptest! {
        #[test]
        fn a_claim_and_its_contrary_never_both_hold(
            effects in proptest::collection::vec(-100.0f64..100.0, 1..6)) {
            let mirrored: Vec<f64> = effects.iter().map(|effect| -effect).collect();
            let agree = |test, effects: &[f64]| judged(test, effects) == Verdict::Agrees;
            prop_assert!(!(agree(FALLS, &effects) && agree(RISES, &effects)));
            prop_assert!(!(agree(Test::Order, &effects) && agree(Test::Order, &mirrored)));
            prop_assert_eq!(agree(FALLS, &effects), agree(RISES, &mirrored));
        }

        #[test]
        fn the_order_of_boots_is_nothing(
            mut effects in proptest::collection::vec(-100.0f64..100.0, 1..6), expected in -100.0f64..100.0) {
            let size = Test::Size { expected, band: 10.0 };
            let before = judged(size, &effects);
            effects.reverse();
            prop_assert_eq!(judged(size, &effects), before);
        }
    }
}
