// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the smallest difference that the test detects, and the number of runs that it needs to detect a given
//! difference.
//!
//! In the model, both sides' figures are distributed like the measured figures, and one side is shifted. B. J. Collings
//! and M. A. Hamilton describe this model (Estimating the Power of the Two-Sample Wilcoxon Test for Location Shift,
//! Biometrics 44, 1988). The model does not assume a normal distribution, because on a busy host a few runs are
//! outliers, which inflate a standard deviation far more than they disturb ranks.
//!
//! For few runs, this module simulates the model. For each drawn pair of sides, it computes the smallest shift that the
//! rank sum test detects. This shift is the u-th smallest of all differences between a figure of one side and a figure
//! of the other, where u is the critical value of Mann and Whitney's U. U counts the pairs of figures whose order
//! agrees with the shift. The quantile [`POWER`] of these shifts is the shift that is detected with that probability.
//! The random numbers start from a fixed seed, so equal arguments give equal results. For more than [`FEW`] runs, the
//! module uses the formula of G. E. Noether (Sample Size Determination for Some Common Nonparametric Tests, Journal of
//! the American Statistical Association 82, 1987), which requires somewhat more runs than necessary at small levels.
//!
//! The result is an estimate: with five runs per side, the error of the estimated spread is about a third.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::median;
use crate::rank::count_ways;

/// The probability of detecting a difference of the reported size.
pub const POWER: f64 = 0.8;
/// The numbers of runs that [`runs_to_see`] recommends.
pub const LADDER: [usize; 20] = [
    5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 80, 100, 140, 200,
];
/// The number of simulated pairs of sides. With this number, the quantile is accurate to 1 %.
const DRAWS: usize = 2000;
/// The module simulates at most this total number of runs, A and B together.
const FEW: usize = 100;
/// The seed of the random numbers.
const SEED: u64 = 0x51_6e_1f;

/// Returns the distances of figures from the median of their side. Empty if no side has two or more figures. The median
/// of a few figures lies nearer to them than the true median does, so the distances are widened accordingly.
pub fn residuals(sides: &[&[f64]]) -> Vec<f64> {
    let several = sides.iter().filter(|side| side.len() > 1);
    let apart = several.flat_map(|side| {
        let middle = median(side).unwrap_or(0.0);
        let wider = (side.len() as f64 / (side.len() - 1) as f64).sqrt();
        side.iter().map(move |figure| (figure - middle) * wider)
    });
    apart.collect()
}

/// Returns the smallest shift that a test of `a` against `b` figures at `level` detects with probability
/// [`POWER`] if figures are spread like `residuals`. `None` if the test can't detect any shift, or if there are no
/// residuals.
pub fn detectable_shift(residuals: &[f64], a: usize, b: usize, level: f64) -> Option<f64> {
    if residuals.is_empty() {
        return None;
    }
    match a + b > FEW {
        true => shift_by_formula(residuals, a, b, level),
        false => shift_by_simulation(residuals, a, b, critical_u(a, b, level)?),
    }
}

/// Returns how many runs each side needs to detect `shift` at `level` with probability [`POWER`], as a number
/// from [`LADDER`]. `None` if [`LADDER`] has no number that is large enough, or if there are no residuals.
pub fn runs_to_see(residuals: &[f64], shift: f64, level: f64) -> Option<usize> {
    let enough = |runs: &&usize| {
        detectable_shift(residuals, **runs, **runs, level).is_some_and(|least| least <= shift)
    };
    LADDER.iter().find(enough).copied()
}

fn shift_by_simulation(residuals: &[f64], a: usize, b: usize, critical: usize) -> Option<f64> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut shifts: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let mut draw = || residuals[random.usize(..residuals.len())];
            let one: Vec<f64> = (0..a).map(|_| draw()).collect();
            let other: Vec<f64> = (0..b).map(|_| draw()).collect();
            let apart = one.iter().flat_map(|x| other.iter().map(move |y| x - y));
            let mut apart: Vec<f64> = apart.collect();
            *apart.select_nth_unstable_by(critical - 1, f64::total_cmp).1
        })
        .collect();
    quantile(&mut shifts, POWER)
}

/// Returns the smallest detectable shift by Noether's formula, which gives the share of all pairs whose order has to
/// agree with the shift.
fn shift_by_formula(residuals: &[f64], a: usize, b: usize, level: f64) -> Option<f64> {
    let normal = Normal::standard();
    let far = normal.inverse_cdf(1.0 - level / 2.0) + normal.inverse_cdf(POWER);
    let part = 0.5 + far * ((a + b + 1) as f64 / (12 * a * b) as f64).sqrt();
    let apart = residuals
        .iter()
        .flat_map(|x| residuals.iter().map(move |y| x - y));
    let mut apart: Vec<f64> = apart.collect();
    (part < 1.0).then(|| quantile(&mut apart, part)).flatten()
}

fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    let rank = (values.len() as f64 * part).ceil().max(1.0) as usize;
    (rank <= values.len()).then(|| *values.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
}

/// Returns the smallest U that the test regards as a difference: U of all `a` times `b` pairs have to be in the same
/// order. `None` if even all pairs are not enough.
fn critical_u(a: usize, b: usize, level: f64) -> Option<usize> {
    // The rank sum of `a` figures is U plus the smallest possible rank sum.
    let ranks: Vec<usize> = (1..=a + b).collect();
    let ways = &count_ways(&ranks, a)[a * (a + 1) / 2..];
    let all: f64 = ways.iter().sum();
    let mut above = 0.0;
    let small = |ways: &&f64| {
        above += **ways;
        above <= level / 2.0 * all
    };
    let found = ways.iter().rev().take_while(small).count();
    (found > 0).then(|| a * b + 1 - found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{least_p_value, p_value};

    fn figures(random: &mut fastrand::Rng, count: usize, shift: f64) -> Vec<f64> {
        let normal = Normal::standard();
        let mut draw = || normal.inverse_cdf(random.f64().max(f64::MIN_POSITIVE));
        (0..count).map(|_| draw() + shift).collect()
    }

    /// Returns the share of simulated tests that find a shift.
    fn share_found(a: usize, b: usize, level: f64, shift: f64) -> f64 {
        let mut random = fastrand::Rng::with_seed(7);
        // A test of many runs takes a long time.
        let times = if a + b > 40 { 100 } else { 1000 };
        let finds = (0..times).filter(|_| {
            let a = figures(&mut random, a, 0.0);
            p_value(&a, &figures(&mut random, b, shift)) <= level
        });
        finds.count() as f64 / f64::from(times)
    }

    #[test]
    fn what_is_said_to_be_seen_is_seen_so_often_and_less_is_not() {
        let spread = figures(&mut fastrand::Rng::with_seed(9), 1000, 0.0);
        for (a, b, level) in [
            (5, 5, 0.01),
            (7, 7, 0.01 / 6.0),
            (12, 8, 0.01),
            (20, 20, 1e-4),
            (40, 40, 1e-4),
            (60, 60, 0.01),
        ] {
            let shift = detectable_shift(&spread, a, b, level).unwrap();
            let often = share_found(a, b, level, shift);
            let above = if a + b > FEW { 0.17 } else { 0.1 };
            let about = POWER - 0.1..POWER + above;
            assert!(about.contains(&often), "{a} {b} {level}: {often}");
            assert!(share_found(a, b, level, shift / 2.0) < 0.5);
            assert!(share_found(a, b, level, 0.0) <= level + 0.01);
        }
    }

    #[test]
    fn of_five_runs_of_a_side_the_answer_is_about_right() {
        let mut random = fastrand::Rng::with_seed(3);
        let truth = detectable_shift(&figures(&mut random, 1000, 0.0), 6, 6, 0.01).unwrap();
        let mut told: Vec<f64> = (0..100)
            .filter_map(|_| {
                let sides = [5, 5].map(|runs| figures(&mut random, runs, 0.0));
                let residuals = residuals(&[&sides[0], &sides[1]]);
                detectable_shift(&residuals, 6, 6, 0.01)
            })
            .collect();
        told.sort_by(f64::total_cmp);
        let (low, middle, high) = (told[10] / truth, told[50] / truth, told[90] / truth);
        assert!((0.8..1.2).contains(&middle), "{middle}");
        assert!(low > 0.5 && high < 1.7, "{low} {high}");
    }

    #[test]
    fn the_critical_value_is_the_tests_own() {
        // These are values of the published table of U: 5 and 5 runs at 0.01 and 0.05, 8 and 8 at 0.05, 10 and 10 at
        // 0.01.
        for (runs, level, most) in [(5, 0.01, 0), (5, 0.05, 2), (8, 0.05, 13), (10, 0.01, 16)] {
            assert_eq!(critical_u(runs, runs, level), Some(runs * runs - most));
        }
        assert_eq!(critical_u(5, 5, least_p_value(5, 5) * 0.999), None);
        assert_eq!(detectable_shift(&[1.0], 4, 4, 0.01), None);
        assert_eq!(detectable_shift(&[1.0], 0, 9, 0.01), None);
        assert_eq!(detectable_shift(&[], 9, 9, 0.01), None);
    }

    #[test]
    fn a_smaller_difference_needs_more_runs() {
        let spread = figures(&mut fastrand::Rng::with_seed(9), 1000, 0.0);
        let runs = [4.0, 2.0, 1.0, 0.5].map(|shift| runs_to_see(&spread, shift, 0.01).unwrap());
        assert!(runs.is_sorted() && runs[3] > 4 * runs[1], "{runs:?}");
        // For normally distributed figures, Noether's formula gives 98 runs for a shift of half a standard deviation.
        assert!((80..=140).contains(&runs[3]), "{runs:?}");
        assert_eq!(runs_to_see(&spread, 0.01, 0.01), None);
        assert_eq!(runs_to_see(&[0.0; 4], 0.01, 0.01), Some(5));
    }

    #[test]
    fn a_few_runs_that_stand_out_hide_less_than_their_deviation_says() {
        let mut spread = figures(&mut fastrand::Rng::with_seed(9), 100, 0.0);
        let alone = runs_to_see(&spread, 1.0, 0.01).unwrap();
        spread
            .iter_mut()
            .step_by(10)
            .for_each(|figure| *figure += 30.0);
        let runs = runs_to_see(&spread, 1.0, 0.01).unwrap();
        // The standard deviation is ten times as large, which would require a hundred times as many runs.
        assert!(runs > alone && runs < 3 * alone, "{alone} {runs}");
    }

    #[test]
    fn residuals_are_about_each_sides_own_median() {
        let wider = 1.5f64.sqrt();
        let found = residuals(&[&[1.0, 3.0, 2.0], &[101.0, 103.0, 102.0], &[9.0]]);
        assert_eq!(found, [-wider, wider, 0.0, -wider, wider, 0.0]);
        assert!(residuals(&[&[1.0], &[5.0]]).is_empty());
    }
}
