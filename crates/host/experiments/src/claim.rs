// SPDX-License-Identifier: MIT OR Apache-2.0
//! A claim: a statement of the source, the part of it that is tested, and our numbers for it in each boot.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::figures::ByBoot;
use super::verdict::{Test, Verdict, Way, judge};

/// The share of a published effect that our effect must reach. A smaller effect does not count as the published
/// one.
const COUNTS: f64 = 1.0 / 3.0;

/// The smallest effect that counts in a test of a sign or an order if the source states no accuracy, in per cent or in
/// points. This limit is needed because equal boots do not vary, so an effect can't be compared with their variation.
const LEAST: f64 = 1.0;

/// A statement of the source, and our numbers about it: one figure is compared with another, in every boot.
pub struct Claim {
    /// The source's statement: either its sentence, shortened, or its number with the unit.
    source: String,
    /// The tested part of the statement, if the comparison does not show it by itself.
    tested: Option<String>,
    test: Test,
    /// The smallest effect that counts, if one was set.
    least: Option<f64>,
    /// The unit of the difference. If `None`, the effect is in per cent of the second figure.
    unit: Option<&'static str>,
    one: (String, ByBoot<f64>),
    other: (String, ByBoot<f64>),
    /// The names of the probes for the properties that the claim needs and the machine lacks.
    missing: BTreeSet<String>,
    /// The reason for a different result, if there is one.
    reason: Option<&'static str>,
}

/// Our numbers in one boot.
#[derive(Serialize)]
struct Ours<'c> {
    boot: &'c str,
    one: f64,
    other: f64,
    /// The effect, which is `null` in files if the second figure is 0 and the first is not.
    effect: f64,
}

impl Claim {
    /// Creates a claim about `one` compared with `other`, each with its name.
    pub fn new(
        source: impl Into<String>,
        test: Test,
        one: (&str, impl Into<ByBoot<f64>>),
        other: (&str, impl Into<ByBoot<f64>>),
    ) -> Self {
        let one: (String, ByBoot<f64>) = (one.0.into(), one.1.into());
        let other: (String, ByBoot<f64>) = (other.0.into(), other.1.into());
        let missing: BTreeSet<String> = one.1.missing_probes() | other.1.missing_probes();
        Self {
            source: source.into(),
            tested: None,
            test,
            least: None,
            unit: None,
            one,
            other,
            missing,
            reason: None,
        }
    }

    /// Claims that the first figure is below the second.
    pub fn new_below(
        source: impl Into<String>,
        one: (&str, impl Into<ByBoot<f64>>),
        other: (&str, impl Into<ByBoot<f64>>),
    ) -> Self {
        Self::new(source, Test::Order, one, other)
    }

    /// Sets the tested part of the source's statement, for a comparison that does not show it by itself.
    pub fn with_tested_part(self, tested: impl Into<String>) -> Self {
        Self {
            tested: Some(tested.into()),
            ..self
        }
    }

    /// Makes the effect a difference, in `unit`. Otherwise it is in per cent of the second figure.
    pub fn difference_in(self, unit: &'static str) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }

    /// Ignores effects below `least`, for example below the last digit of the source's figures.
    pub fn at_least(self, least: f64) -> Self {
        let least = Some(least);
        Self { least, ..self }
    }

    /// Returns the smallest effect that counts; 0 if all effects count.
    fn smallest_effect(&self) -> f64 {
        self.least.unwrap_or(match (self.test, self.unit) {
            (Test::Sign { .. } | Test::Order, None | Some("points")) => LEAST,
            _ => 0.0,
        })
    }

    /// Ignores our effect if it is smaller than the share [`COUNTS`] of the source's effect, which is the difference of
    /// its two figures.
    pub fn at_least_share_of(self, one: f64, other: f64) -> Self {
        let least = COUNTS * self.effect(one, other).abs();
        self.at_least(least)
    }

    /// Sets the reason that is shown if the result differs from the source's.
    pub fn with_reason(self, why: &'static str) -> Self {
        Self {
            reason: Some(why),
            ..self
        }
    }

    /// Judges our numbers.
    pub fn verdict(&self) -> Verdict {
        match self.missing.is_empty() {
            true => self.verdict_on_counts(),
            false => Verdict::NotModelled,
        }
    }

    /// Judges our counts as if the machine modelled all properties that the claim needs.
    pub fn verdict_on_counts(&self) -> Verdict {
        let effects: Vec<f64> = self.our_boots().iter().map(|ours| ours.effect).collect();
        judge(self.test, &effects, self.smallest_effect())
    }

    /// Returns the verdict in words; if the claim is not judged, adds the verdict on our counts.
    pub fn verdict_in_words(&self) -> String {
        let counts = self.verdict_on_counts().shown_word();
        match self.verdict() {
            Verdict::NotModelled => format!("not modelled (our counts: {counts})"),
            judged => judged.shown_word().into(),
        }
    }

    /// Returns the reason for the result if it differs from the source's.
    pub fn reason_for_difference(&self) -> Option<String> {
        match self.verdict() {
            Verdict::NotModelled => {
                let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
                let missing = missing.join(", ");
                Some(format!("this machine does not model {missing}"))
            }
            Verdict::Agrees => None,
            Verdict::DirectionOnly | Verdict::NoDifference | Verdict::Differs => {
                self.reason.map(String::from)
            }
        }
    }

    /// Returns the names of the probes for the properties that the claim needs and the machine lacks.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(String::as_str)
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Describes the tested part of the statement.
    pub fn what_is_tested(&self) -> String {
        let (one, other) = (&self.one.0, &self.other.0);
        let unit = self.unit.unwrap_or("%");
        let comparison = match self.test {
            Test::Sign { way } => {
                let way = match way {
                    Way::Falls => "falls",
                    Way::Rises => "rises",
                };
                format!(
                    "from {other} to {one} it {way}{}",
                    self.describe_smallest_effect(unit)
                )
            }
            Test::Order => format!("{one} below {other}{}", self.describe_smallest_effect(unit)),
            Test::Size { expected, band } => {
                let (expected, band) = (format_effect(expected), format_band(band));
                format!("{one} against {other}: {expected} {unit}, {band} more or less")
            }
            Test::Equality { band } => {
                format!("{one} within {} {unit} of {other}", format_band(band))
            }
        };
        match &self.tested {
            Some(tested) => format!("{tested}: {comparison}"),
            None => comparison,
        }
    }

    /// Describes the smallest effect that counts, if there is one.
    fn describe_smallest_effect(&self, unit: &str) -> String {
        match self.smallest_effect() > 0.0 {
            true => format!(
                " by at least {} {unit}",
                format_band(self.smallest_effect())
            ),
            false => String::new(),
        }
    }

    /// Returns the effect of one figure compared with the other, in the unit of the claim.
    fn effect(&self, one: f64, other: f64) -> f64 {
        match self.unit {
            None if one == other => 0.0,
            None => 100.0 * (one - other) / other.abs(),
            Some(_) => one - other,
        }
    }

    /// Returns our numbers for each boot. A figure that exists only once applies to all boots.
    fn our_boots(&self) -> Vec<Ours<'_>> {
        let (one, other) = (self.one.1.named_figures(), self.other.1.named_figures());
        let boots = one.len().max(other.len());
        debug_assert!(
            [one, other]
                .iter()
                .all(|it| it.len() == 1 || it.len() == boots)
        );
        let at = |figures: &[(String, f64)], boot: usize| {
            figures
                .get(boot)
                .or_else(|| figures.first())
                .map_or(f64::NAN, |it| it.1)
        };
        let named = if one.len() == boots { one } else { other };
        let each = named.iter().enumerate().map(|(boot, (name, _))| {
            let (one, other) = (at(one, boot), at(other, boot));
            Ours {
                boot: name,
                one,
                other,
                effect: self.effect(one, other),
            }
        });
        each.collect()
    }

    /// Describes our numbers: the medians, and the effect in every boot.
    pub fn our_numbers(&self) -> String {
        let named = |(name, figures): &(String, ByBoot<f64>)| {
            format!("{name} {}", number(figures.median()))
        };
        let ours = self.our_boots();
        let effects: Vec<String> = ours.iter().map(|ours| format_effect(ours.effect)).collect();
        let unit = self.unit.unwrap_or("%");
        let effects = match &effects[..] {
            [one] => format!("{one} {unit}"),
            some => format!("{} {unit} in {} boots", some.join(", "), some.len()),
        };
        format!("{}, {}: {effects}", named(&self.one), named(&self.other))
    }

    /// Describes the claim in one line. This line does not name missing properties, because another line names them for
    /// all claims that are not judged.
    pub fn summary_line(&self) -> String {
        let why = self
            .reason_for_difference()
            .filter(|_| self.missing.is_empty());
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        format!(
            "  {}: {} [{}] (ours: {}{why})",
            self.verdict_in_words(),
            self.source,
            self.what_is_tested(),
            self.our_numbers()
        )
    }
}

impl Serialize for Claim {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        /// The format of a claim in files.
        #[derive(Serialize)]
        struct Written<'c> {
            source: &'c str,
            tested: String,
            test: Test,
            least: f64,
            /// Names of the two compared figures.
            one: &'c str,
            other: &'c str,
            /// Unit of the effect.
            unit: &'c str,
            ours: Vec<Ours<'c>>,
            verdict: Verdict,
            agrees: Option<bool>,
            /// The verdict as if the machine modelled all properties.
            by_counts: Verdict,
            #[serde(skip_serializing_if = "Option::is_none")]
            why: Option<String>,
        }
        let verdict = self.verdict();
        let written = Written {
            source: &self.source,
            tested: self.what_is_tested(),
            test: self.test,
            least: self.smallest_effect(),
            one: &self.one.0,
            other: &self.other.0,
            unit: self.unit.unwrap_or("%"),
            ours: self.our_boots(),
            verdict,
            agrees: verdict.agrees(),
            by_counts: self.verdict_on_counts(),
            why: self.reason_for_difference(),
        };
        written.serialize(to)
    }
}

/// Formats a figure with as many digits as are useful.
fn number(value: f64) -> String {
    if value.abs() < 1000.0 {
        format!("{value:.2}")
    } else {
        page::thousands(value)
    }
}

/// Formats a band without meaningless digits.
fn format_band(band: f64) -> String {
    let text = match band < 0.1 {
        true => format!("{band:.3}"),
        false => format!("{band:.2}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats an effect with its sign.
fn format_effect(effect: f64) -> String {
    if effect != 0.0 && effect.abs() < 0.1 {
        format!("{effect:+.3}")
    } else if effect.abs() < 1.0 {
        format!("{effect:+.2}")
    } else {
        format!("{effect:+.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::Constant;
    use super::*;

    fn by_boot(values: [f64; 3]) -> ByBoot<f64> {
        let boots = (1..).zip(values);
        ByBoot::new(
            boots
                .map(|(n, value)| (format!("seed {n}"), value))
                .collect(),
        )
    }

    #[test]
    fn a_claim_that_does_not_hold_says_why() {
        let claim = Claim::new_below("a is cheaper", ("a", Constant(2.0)), ("b", Constant(1.0)));
        let claim = claim.with_reason("a is emulated");
        assert_eq!(
            claim.summary_line(),
            "  DIFFERS: a is cheaper [a below b by at least 1 %] (ours: a 2.00, b 1.00: +100.0 %; a is emulated)"
        );
        let claim = Claim::new_below("a is cheaper", ("a", Constant(1.0)), ("b", Constant(2.0)));
        let claim = claim.with_reason("x");
        assert_eq!(
            (claim.verdict(), claim.reason_for_difference()),
            (Verdict::Agrees, None)
        );
    }

    #[test]
    fn boots_that_contradict_each_other_show_no_difference() {
        let claim = Claim::new_below(
            "a is cheaper",
            ("a", by_boot([1.0, 3.0, 1.0])),
            ("b", Constant(2.0)),
        );
        assert_eq!(
            claim.summary_line(),
            "  no difference: a is cheaper [a below b by at least 1 %] \
             (ours: a 1.00, b 2.00: -50.0, +50.0, -50.0 % in 3 boots)"
        );
    }

    #[test]
    fn less_than_a_third_of_what_is_published_is_none() {
        let below = |one: f64| {
            let claim =
                Claim::new_below("a is cheaper", ("a", Constant(one)), ("b", Constant(100.0)));
            claim.at_least_share_of(30.0, 40.0)
        };
        assert_eq!(below(91.0).verdict(), Verdict::Agrees);
        assert_eq!(below(92.0).verdict(), Verdict::NoDifference);
        assert_eq!(below(109.0).verdict(), Verdict::Differs);
        assert_eq!(below(0.0).what_is_tested(), "a below b by at least 8.33 %");
        // The smallest effect applies to claims in any unit.
        let points = Claim::new_below("a is rarer", ("a", Constant(5.0)), ("b", Constant(8.0)));
        let points = points.difference_in("points").at_least_share_of(30.0, 40.0);
        assert_eq!(points.verdict(), Verdict::NoDifference);
    }

    #[test]
    fn boots_that_are_alike_do_not_make_an_effect_of_next_to_nothing() {
        let of =
            |one| Claim::new_below("a is cheaper", ("a", Constant(one)), ("b", Constant(100.0)));
        assert_eq!(of(99.74).verdict(), Verdict::NoDifference);
        assert_eq!(of(99.74).at_least(0.2).verdict(), Verdict::Agrees);
        assert_eq!(of(98.9).verdict(), Verdict::Agrees);
        // A difference in microseconds has no smallest effect.
        assert_eq!(of(99.74).difference_in("us").verdict(), Verdict::Agrees);
        assert_eq!(
            of(99.74).difference_in("points").verdict(),
            Verdict::NoDifference
        );
    }

    #[test]
    fn pairs_are_of_one_boot() {
        // A factor that both figures of a boot share cancels out.
        let (a, b) = (by_boot([10.0, 20.0, 40.0]), by_boot([20.0, 40.0, 80.0]));
        let half = Test::Size {
            expected: -50.0,
            band: 1.0,
        };
        let claim = Claim::new("half", half, ("a", a), ("b", b));
        assert_eq!(claim.verdict(), Verdict::Agrees);
        assert!(claim.what_is_tested().contains("-50.0 %, 1 more or less"));
    }

    #[test]
    fn a_difference_has_its_unit() {
        let equal = Test::Equality { band: 2.0 };
        let claim = Claim::new(
            "the same",
            equal,
            ("pipe", Constant(-51.0)),
            ("notify", Constant(-49.5)),
        );
        let claim = claim.difference_in("points");
        assert_eq!(claim.verdict(), Verdict::Agrees);
        assert_eq!(claim.what_is_tested(), "pipe within 2 points of notify");
        let claim = Claim::new(
            "the same",
            equal,
            ("pipe", Constant(-51.0)),
            ("notify", Constant(-48.5)),
        );
        assert_eq!(claim.difference_in("points").verdict(), Verdict::Differs);
    }

    #[test]
    fn what_was_nothing_before_has_a_sign_and_no_size() {
        let rises = Test::Sign { way: Way::Rises };
        let claim = Claim::new(
            "it appears",
            rises,
            ("after", Constant(3.0)),
            ("before", Constant(0.0)),
        );
        assert_eq!(claim.verdict(), Verdict::Agrees);
        let text = serde_json::to_string(&claim).unwrap();
        assert!(text.contains("\"effect\":null"), "{text}");
        assert!(
            text.contains("\"verdict\":\"agrees\",\"agrees\":true"),
            "{text}"
        );
        assert!(
            text.contains("{\"kind\":\"sign\",\"way\":\"rises\"}"),
            "{text}"
        );
        let claim = Claim::new_below(
            "nothing",
            ("after", Constant(0.0)),
            ("before", Constant(0.0)),
        );
        assert_eq!(claim.verdict(), Verdict::NoDifference);
    }

    #[test]
    fn a_claim_about_what_is_not_modelled_is_not_judged() {
        for one in [1.0, 3.0] {
            let claim = |missing: &[&str]| {
                let missing = missing.iter().map(|&probe| probe.to_owned());
                let one = ByBoot::from(Constant(one)).with_missing_probes(missing.collect());
                let claim = Claim::new_below("WFE waits", ("one", one), ("other", Constant(2.0)));
                claim.with_reason("x")
            };
            assert_ne!(claim(&[]).verdict(), Verdict::NotModelled);
            let claim = claim(&["wfe_halts"]);
            assert_eq!(claim.verdict().agrees(), None);
            let line = claim.summary_line();
            let counts = if one < 2.0 { "agrees" } else { "DIFFERS" };
            let verdict = format!("  not modelled (our counts: {counts}): WFE waits");
            assert!(line.starts_with(&verdict), "{line}");
            assert!(line.ends_with(" %)"), "{line}");
            assert_eq!(
                claim.reason_for_difference().unwrap(),
                "this machine does not model wfe_halts"
            );
        }
    }
}
