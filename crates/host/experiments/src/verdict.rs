// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for judging a claim; `docs/experiments.md` describes them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// The result of comparing our numbers with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Our numbers agree with the claim.
    Agrees,
    /// Our numbers have the direction that the source claims, but their size is outside the band.
    DirectionOnly,
    /// The effect in our numbers can't be distinguished from zero.
    NoDifference,
    /// Our numbers contradict the claim.
    Differs,
    /// The machine does not model properties that the claim needs.
    NotModelled,
}

impl Verdict {
    /// All verdicts, in the order of a summary.
    pub const ALL: [Self; 5] = [
        Self::Agrees,
        Self::DirectionOnly,
        Self::NoDifference,
        Self::Differs,
        Self::NotModelled,
    ];

    /// Returns the verdict's word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::DirectionOnly => "direction only",
            Self::NoDifference => "no difference",
            Self::Differs => "differs",
            Self::NotModelled => "not modelled",
        }
    }

    /// Returns the word that shows the verdict to people. A contradiction is in capitals.
    pub const fn shown_word(self) -> &'static str {
        match self {
            Self::Differs => "DIFFERS",
            other => other.word(),
        }
    }

    /// Whether our numbers agree with the claim. `None` if they leave this undecided.
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

/// The number of claims in total, and for each verdict.
#[derive(Serialize)]
pub struct Counts {
    claims: usize,
    /// Number of claims that this machine can judge.
    judged: usize,
    #[serde(flatten)]
    verdicts: BTreeMap<Verdict, usize>,
    /// For the claims that are not judged, the number of each verdict on our counts.
    #[serde(skip)]
    others: BTreeMap<Verdict, usize>,
}

impl Counts {
    /// Counts claims, each with its verdict and with the verdict on our counts. A verdict without claims has the number
    /// 0.
    pub fn of_claims(claims: impl Iterator<Item = (Verdict, Verdict)>) -> Self {
        let none = || Verdict::ALL.map(|verdict| (verdict, 0)).into();
        let mut counts = Self {
            claims: 0,
            judged: 0,
            verdicts: none(),
            others: none(),
        };
        for (verdict, by_counts) in claims {
            counts.claims += 1;
            *counts.verdicts.entry(verdict).or_default() += 1;
            match verdict {
                Verdict::NotModelled => *counts.others.entry(by_counts).or_default() += 1,
                _ => counts.judged += 1,
            }
        }
        counts
    }

    /// Describes how many claims can be judged on `place`.
    pub fn judged_on(&self, place: &str) -> String {
        let Self { claims, judged, .. } = self;
        let plural = if *claims == 1 { "" } else { "s" };
        format!("{judged} of {claims} claim{plural} can be judged on {place}")
    }

    /// Whether there are claims, and none of them can be judged.
    pub const fn none_is_judged(&self) -> bool {
        self.claims > 0 && self.judged == 0
    }

    /// Describes the counts in a line.
    pub fn summary_line(&self) -> String {
        let Self { claims, judged, .. } = self;
        let mut line = self.judged_on("this board");
        if *judged > 0 {
            let each = self
                .verdicts
                .iter()
                .filter(|(verdict, _)| **verdict != Verdict::NotModelled);
            let each: Vec<String> = each
                .map(|(verdict, count)| format!("{} {count}", verdict.word()))
                .collect();
            line += &format!(": {}", each.join(", "));
        }
        if judged < claims {
            let of_them = match judged {
                0 => String::new(),
                _ => format!(
                    "of the other {}, which it does not model, ",
                    claims - judged
                ),
            };
            line += &format!(
                "; {of_them}our counts agree with {} and contradict {}",
                self.others[&Verdict::Agrees],
                self.others[&Verdict::Differs],
            );
        }
        line
    }
}

/// A test of an effect. An effect is the difference of two compared figures, or this difference in per cent of the
/// second figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Test {
    /// A change has this direction.
    Sign { way: Way },
    /// The first figure is below the second.
    Order,
    /// The effect is `expected`, plus or minus `band`.
    Size { expected: f64, band: f64 },
    /// No boot has an effect larger than `band`.
    Equality { band: f64 },
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    Falls,
    Rises,
}

/// Returns the verdict of `test` on the effects of all boots. Effects below `least` do not count.
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
    let Some(effect) = significant_median(effects, least) else {
        return Verdict::NoDifference;
    };
    match test {
        _ if effect * expected <= 0.0 => Verdict::Differs,
        Test::Size { expected, band } if (effect - expected).abs() > band => Verdict::DirectionOnly,
        _ => Verdict::Agrees,
    }
}

/// Smallest number of boots for a test against chance. With six boots, the probability that all effects have the same
/// sign without a real effect is two in 64, which is at most [`LEVEL`].
const TESTED: usize = 6;
/// Significance level: the largest accepted probability that chance alone causes the effects.
const LEVEL: f64 = 0.05;

/// Returns the median effect if it is significant: at least `least`, and consistent across boots.
fn significant_median(effects: &[f64], least: f64) -> Option<f64> {
    let median = median_nearer_zero(effects)?;
    let told = match effects.len() < TESTED {
        true => exceeds_spread(effects, median),
        false => exceeds_chance(effects, least),
    };
    (told && median != 0.0 && median.abs() >= least).then_some(median)
}

/// Returns the median of the effects. The median of the negated effects is the negated median. So if two effects are in
/// the middle, the median is the one nearer to 0, or 0 if their signs differ.
fn median_nearer_zero(effects: &[f64]) -> Option<f64> {
    let mirrored: Vec<f64> = effects.iter().map(|effect| -effect).collect();
    let (lower, upper) = (
        significance::median(effects)?,
        -significance::median(&mirrored)?,
    );
    Some(match lower.signum() == upper.signum() {
        true if lower.abs() < upper.abs() => lower,
        true => upper,
        false => 0.0,
    })
}

/// Whether the effects of all boots have the sign of their median, and the median is at least as large as the
/// difference between the largest and the smallest effect.
fn exceeds_spread(effects: &[f64], median: f64) -> bool {
    let same_sign = effects.iter().all(|effect| effect * median > 0.0);
    same_sign && median.abs() >= spread(effects)
}

/// Whether chance alone would rarely cause these effects. A boot whose effect is below `least` counts for neither
/// direction.
fn exceeds_chance(effects: &[f64], least: f64) -> bool {
    let counted = effects
        .iter()
        .copied()
        .filter(|effect| effect.abs() >= least);
    let counted: Vec<f64> = counted.collect();
    significance::signed_p_value(&counted) <= LEVEL
}

/// Returns the difference between the largest and the smallest effect.
fn spread(effects: &[f64]) -> f64 {
    let least = effects.iter().copied().fold(f64::INFINITY, f64::min);
    let most = effects.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Infinite effects of the same sign are equal, but their difference is not a number.
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
    fn the_median_effect_is_that_of_the_mirrored_ones() {
        for (effects, expected) in [
            (vec![2.0, 3.0, 7.0], 3.0),
            (vec![2.0, 3.0, 7.0, 9.0], 3.0),
            (vec![-2.0, -3.0, -7.0, -9.0], -3.0),
            (vec![-1.0, 2.0], 0.0),
        ] {
            assert_eq!(median_nearer_zero(&effects), Some(expected));
        }
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

    /// Returns the effects of `count` boots, which are evenly distributed within `spread` of `effect`.
    fn boots(random: &mut fastrand::Rng, count: usize, effect: f64, spread: f64) -> Vec<f64> {
        let boot = |_| effect + spread * random.f64().mul_add(2.0, -1.0);
        (0..count).map(boot).collect()
    }

    /// Counts the verdicts on a fall of at least 5, in a thousand repetitions of `count` boots.
    fn of_a_thousand(count: usize, effect: f64, spread: f64) -> BTreeMap<Verdict, usize> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut verdicts = BTreeMap::new();
        for _ in 0..1000 {
            let effects = boots(&mut random, count, effect, spread);
            *verdicts.entry(judge(FALLS, &effects, 5.0)).or_default() += 1;
        }
        verdicts
    }

    #[test]
    fn an_effect_well_off_the_least_has_one_verdict_whatever_the_seeds() {
        for count in [6, 12] {
            for (effect, spread, verdict) in [
                (-30.0, 25.0, Verdict::Agrees),
                (30.0, 25.0, Verdict::Differs),
                (2.0, 4.0, Verdict::NoDifference),
                (-2.0, 4.0, Verdict::NoDifference),
            ] {
                let verdicts = of_a_thousand(count, effect, spread);
                assert!(verdicts[&verdict] >= 990, "{count} {effect}: {verdicts:?}");
            }
        }
    }

    #[test]
    fn chance_is_seldom_taken_for_an_effect() {
        for count in [6, 12] {
            for least in [0.0, 5.0] {
                let mut random = fastrand::Rng::with_seed(3);
                let told = (0..1000).filter(|_| {
                    let effects = boots(&mut random, count, 0.0, 20.0);
                    judge(FALLS, &effects, least) != Verdict::NoDifference
                });
                let told = told.count();
                assert!(told <= 65, "{count} {least}: {told}");
                // At the test's significance level, chance alone does sometimes pass as an effect.
                assert!(told >= 20 || least > 0.0, "{count} {least}: {told}");
            }
        }
    }

    #[test]
    fn more_boots_tell_what_three_cannot() {
        // The largest of these effects is seven times the smallest.
        let often = |count| of_a_thousand(count, -20.0, 15.0);
        let agree = |count| {
            often(count)
                .get(&Verdict::Agrees)
                .copied()
                .unwrap_or_default()
        };
        assert!(agree(3) < 900, "{}", agree(3));
        assert!(agree(12) > 995, "{}", agree(12));
        assert_eq!(often(12).get(&Verdict::Differs), None);
    }

    #[test]
    fn a_boot_without_an_effect_is_on_neither_side() {
        let mut effects = vec![-6.0; 6];
        assert_eq!(judge(FALLS, &effects, 5.0), Verdict::Agrees);
        effects.extend([-4.0, 0.0, 4.0]);
        assert_eq!(judge(FALLS, &effects, 5.0), Verdict::Agrees);
        let against = [[-6.0; 6].as_slice(), &[4.0; 5]].concat();
        assert_eq!(judge(FALLS, &against, 5.0), Verdict::Agrees);
        assert_eq!(judge(FALLS, &against, 0.0), Verdict::NoDifference);
        // Only five effects still count. Even if all effects have the same sign, this can be chance.
        effects[0] = -4.9;
        assert_eq!(judge(FALLS, &effects, 5.0), Verdict::NoDifference);
        // Most boots show no effect.
        let few = [[-6.0; 6].as_slice(), &[-1.0; 7]].concat();
        assert_eq!(judge(FALLS, &few, 5.0), Verdict::NoDifference);
        assert_eq!(judge(FALLS, &few, 0.0), Verdict::Agrees);
        assert_eq!(judge(FALLS, &[0.0; 12], 0.0), Verdict::NoDifference);
    }

    #[test]
    fn every_verdict_is_counted_and_what_is_not_judged_is_apart() {
        use Verdict::{Agrees, Differs, NoDifference, NotModelled};
        let judged = [(Agrees, Agrees), (Agrees, Agrees), (Differs, Differs)];
        let all = Counts::of_claims(judged.into_iter());
        assert_eq!(
            all.summary_line(),
            "3 of 3 claims can be judged on this board: agrees 2, direction only 0, no difference 0, differs 1"
        );
        let others = [Agrees, Agrees, NoDifference, Differs].map(|counts| (NotModelled, counts));
        let some = Counts::of_claims(judged.into_iter().chain(others));
        assert_eq!(
            some.summary_line(),
            "3 of 7 claims can be judged on this board: agrees 2, direction only 0, no difference 0, differs 1; \
             of the other 4, which it does not model, our counts agree with 2 and contradict 1"
        );
        let text = serde_json::to_string(&some).unwrap();
        assert!(
            text.contains("\"judged\":3") && text.contains("\"not modelled\":4"),
            "{text}"
        );
        let none = Counts::of_claims(others.into_iter());
        assert_eq!(
            none.summary_line(),
            "0 of 4 claims can be judged on this board; our counts agree with 2 and contradict 1"
        );
    }

    proptest! {
        #[test]
        fn a_claim_and_its_contrary_never_both_hold(
            effects in proptest::collection::vec(-100.0f64..100.0, 1..13)) {
            let mirrored: Vec<f64> = effects.iter().map(|effect| -effect).collect();
            let agree = |test, effects: &[f64]| judged(test, effects) == Verdict::Agrees;
            prop_assert!(!(agree(FALLS, &effects) && agree(RISES, &effects)));
            prop_assert!(!(agree(Test::Order, &effects) && agree(Test::Order, &mirrored)));
            prop_assert_eq!(agree(FALLS, &effects), agree(RISES, &mirrored));
        }

        #[test]
        fn what_falls_differs_where_it_should_rise(
            effects in proptest::collection::vec(-100.0f64..-5.0, 6..13), least in 0.0f64..5.0) {
            prop_assert_eq!(judge(FALLS, &effects, least), Verdict::Agrees);
            prop_assert_eq!(judge(RISES, &effects, least), Verdict::Differs);
        }

        #[test]
        fn what_is_below_the_least_everywhere_is_nothing(
            effects in proptest::collection::vec(-4.9f64..4.9, 1..13)) {
            prop_assert_eq!(judge(FALLS, &effects, 5.0), Verdict::NoDifference);
        }

        #[test]
        fn the_order_of_boots_is_nothing(
            mut effects in proptest::collection::vec(-100.0f64..100.0, 1..13), expected in -100.0f64..100.0) {
            let size = Test::Size { expected, band: 10.0 };
            let before = judged(size, &effects);
            effects.reverse();
            prop_assert_eq!(judged(size, &effects), before);
        }
    }
}
