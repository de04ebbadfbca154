// SPDX-License-Identifier: MIT OR Apache-2.0
//! What difference the test sees, and how many runs it needs for one.
//!
//! The model: figures of a side are spread normally, both sides as wide, and one is
//! shifted. For each of many simulated pairs of sides there is one shift from which on
//! the rank sum test finds it: the u-th smallest of all differences between a figure of one
//! side and a figure of the other, where u is the critical value of Mann and Whitney's U, which counts
//! the pairs that stand in the order of the shift. The shift that is found with probability
//! [`POWER`] is that quantile of those. No formula for large samples is used, because
//! few runs and small levels are the common case. Numbers are drawn from a fixed seed: the
//! same question has the same answer.
//!
//! The spread is itself estimated from the runs, so the answer is good to a quarter where there
//! are five runs a side. Runs that stand far out make it larger than the test, which looks
//! at ranks, would need: the answer is then on the safe side.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::family::{FEWEST, MOST};
use crate::rank::ways;

/// Probability with which a difference of the size named is seen.
pub const POWER: f64 = 0.8;
/// Simulated pairs of sides: the quantile is known to 1 %.
const DRAWS: usize = 2000;
/// Together, figures from which on the critical value is that of the normal approximation.
const MANY: usize = 80;
/// Where the random numbers begin.
const SEED: u64 = 0x51_6e_1f;

/// The standard deviation of figures about the mean of their side; `None` if no side has two.
pub fn spread(sides: &[&[f64]]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    for side in sides {
        let mean = side.iter().sum::<f64>() / side.len().max(1) as f64;
        squares += side.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
        freedom += side.len().saturating_sub(1);
    }
    (freedom > 0).then(|| (squares / freedom as f64).sqrt())
}

/// The smallest shift, in standard deviations of the figures, that a test of `a` against `b`
/// figures at `level` finds with probability [`POWER`]; `None` if it can't find any.
pub fn detectable(a: usize, b: usize, level: f64) -> Option<f64> {
    let critical = critical(a, b, level)?;
    let normal = Normal::standard();
    let mut random = fastrand::Rng::with_seed(SEED);
    // Not 0, of which the quantile is infinite.
    let mut draw = || normal.inverse_cdf(random.f64().max(f64::MIN_POSITIVE));
    let mut shifts: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let one: Vec<f64> = (0..a).map(|_| draw()).collect();
            let other: Vec<f64> = (0..b).map(|_| draw()).collect();
            let apart = one.iter().flat_map(|x| other.iter().map(move |y| x - y));
            let mut apart: Vec<f64> = apart.collect();
            *apart.select_nth_unstable_by(critical - 1, f64::total_cmp).1
        })
        .collect();
    let at = (DRAWS as f64 * POWER) as usize;
    Some(*shifts.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// How many runs each side needs to find a shift of so many standard deviations at
/// `level` with probability [`POWER`]; `None` if more than [`MOST`].
pub fn runs_to_see(shift: f64, level: f64) -> Option<usize> {
    let enough = |runs: usize| detectable(runs, runs, level).is_some_and(|least| least <= shift);
    let mut few = FEWEST;
    if enough(few) {
        return Some(few);
    }
    // Between `few`, which is too few, and `many`, which is enough.
    let mut many = few;
    while !enough(many) {
        if many == MOST {
            return None;
        }
        (few, many) = (many, (many * 2).min(MOST));
    }
    while many - few > 1 {
        let half = usize::midpoint(few, many);
        if enough(half) { many = half } else { few = half }
    }
    Some(many)
}

/// The smallest U that the test takes for a difference: how many of the `a` times `b` pairs
/// have to stand in one order. `None` if not even all of them are enough.
fn critical(a: usize, b: usize, level: f64) -> Option<usize> {
    let pairs = a * b;
    let tail = level / 2.0;
    if a + b > MANY {
        let deviation = (pairs as f64 * (a + b + 1) as f64 / 12.0).sqrt();
        let far = Normal::standard().inverse_cdf(1.0 - tail) * deviation;
        let least = (pairs as f64 / 2.0 + far + 0.5).ceil() as usize;
        return (least <= pairs).then_some(least);
    }
    // The sum of the ranks of `a` figures is U, and what it is at least.
    let ranks: Vec<usize> = (1..=a + b).collect();
    let ways = &ways(&ranks, a)[a * (a + 1) / 2..];
    let all: f64 = ways.iter().sum();
    let mut above = 0.0;
    let small = |ways: &&f64| {
        above += **ways;
        above <= tail * all
    };
    let found = ways.iter().rev().take_while(small).count();
    (found > 0).then(|| pairs + 1 - found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{least_p, p_value};

    fn figures(random: &mut fastrand::Rng, count: usize, shift: f64) -> Vec<f64> {
        let normal = Normal::standard();
        let mut draw = || normal.inverse_cdf(random.f64().max(f64::MIN_POSITIVE));
        (0..count).map(|_| draw() + shift).collect()
    }

    /// How often the test itself finds a shift.
    fn found(a: usize, b: usize, level: f64, shift: f64) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        let times = 1000;
        let finds = (0..times).filter(|_| {
            let a = figures(&mut random, a, 0.0);
            p_value(&a, &figures(&mut random, b, shift)) <= level
        });
        finds.count() as f64 / f64::from(times)
    }

    #[test]
    fn what_is_said_to_be_seen_is_seen_so_often_and_less_is_not() {
        for (a, b, level) in [(5, 5, 0.01), (7, 7, 0.01 / 6.0), (12, 8, 0.01), (30, 30, 1e-4)] {
            let shift = detectable(a, b, level).unwrap();
            let often = found(a, b, level, shift);
            assert!((POWER - 0.05..POWER + 0.05).contains(&often), "{a} {b} {level}: {often}");
            assert!(found(a, b, level, shift / 2.0) < 0.5);
            assert!(found(a, b, level, 0.0) <= level + 0.01);
        }
    }

    #[test]
    fn the_critical_value_is_the_tests_own() {
        // The published table of U: 5 and 5 at 0.01 and 0.05, 8 and 8 at 0.05, 10 and 10 at 0.01.
        for (runs, level, most) in [(5, 0.01, 0), (5, 0.05, 2), (8, 0.05, 13), (10, 0.01, 16)] {
            assert_eq!(critical(runs, runs, level), Some(runs * runs - most));
        }
        assert_eq!(critical(5, 5, least_p(5, 5) * 0.999), None);
        assert_eq!(detectable(4, 4, 0.01), None);
        assert_eq!(detectable(0, 9, 0.01), None);
    }

    #[test]
    fn both_ways_to_the_critical_value_agree() {
        let exact = critical(MANY / 2, MANY / 2, 1e-3).unwrap();
        let more = critical(MANY / 2, MANY / 2 + 1, 1e-3).unwrap();
        // One figure more is half of `MANY` pairs more, a half or so of which count.
        let between = more - exact;
        assert!((15..35).contains(&between), "{exact} {more}");
    }

    #[test]
    fn a_smaller_difference_needs_more_runs() {
        let runs: Vec<usize> = [4.0, 2.0, 1.0, 0.5]
            .iter()
            .filter_map(|&shift| runs_to_see(shift, 0.01))
            .collect();
        assert_eq!(runs.len(), 4);
        assert!(runs.is_sorted() && runs[0] >= FEWEST && runs[3] > 4 * runs[1], "{runs:?}");
        // The formula for large samples (G. E. Noether, Journal of the American Statistical
        // Association 82, 1987) says 98 for half a deviation.
        assert!((85..115).contains(&runs[3]), "{runs:?}");
        assert_eq!(runs_to_see(0.01, 0.01), None);
    }

    #[test]
    fn the_spread_is_about_each_sides_own_mean() {
        assert_eq!(spread(&[&[1.0, 3.0], &[101.0, 103.0]]), Some(2f64.sqrt()));
        assert_eq!(spread(&[&[1.0], &[5.0]]), None);
        assert_eq!(spread(&[&[], &[5.0, 5.0]]), Some(0.0));
    }
}
