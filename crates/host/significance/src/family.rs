// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges many tests together.
//!
//! The method is that of S. Holm (A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
//! Statistics 6, 1979). Holm's method multiplies the smallest of n p-values by n, the next by n - 1, and so on, and
//! lets no result be below the previous one. If nothing differs between the sides, the probability that any result is
//! at or below a level is at most this level, however the figures depend on each other. Figures of one boot do depend
//! on each other.
//!
//! The price is that each test needs a smaller p-value, and ranks can't give arbitrarily small ones: see
//! [`runs_needed`].

use crate::least_p_value;

/// The smallest number of runs per side for a verdict, even if there is only one test. With four runs per side, the
/// smallest p-value is 0.029.
pub const FEWEST: usize = 5;
/// The largest number of runs per side that [`runs_needed`] returns.
const MOST: usize = 200;

/// Returns the p-values, adjusted for their number, in the given order.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (done, &index) in order.iter().enumerate() {
        let left = (p_values.len() - done) as f64;
        least = least.max((p_values[index] * left).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// Returns how many runs each of two sides needs so that one of `tests` tests can reach `level` after the adjustment,
/// if the two sides do not overlap. The result is at least [`FEWEST`].
pub fn runs_needed(tests: usize, level: f64) -> usize {
    let enough = |runs: &usize| least_p_value(*runs, *runs) * tests as f64 <= level;
    (FEWEST..MOST).find(enough).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holms_example() {
        let adjusted = holm_adjusted(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (adjusted, expected) in adjusted.iter().zip(expected) {
            assert!((adjusted - expected).abs() < 1e-12, "{adjusted} {expected}");
        }
        assert!(holm_adjusted(&[]).is_empty());
    }

    #[test]
    fn more_tests_need_more_runs() {
        let needed = |level| [1, 2, 6, 24, 264, 3000].map(|tests| runs_needed(tests, level));
        assert_eq!(needed(0.01), [5, 6, 7, 8, 10, 11]);
        assert_eq!(needed(0.05), [5, 5, 5, 7, 8, 10]);
        assert_eq!(runs_needed(0, 0.01), FEWEST);
        // With one run fewer, no test could reach the level.
        for tests in [2, 24, 264] {
            let runs = runs_needed(tests, 0.01);
            assert!(least_p_value(runs, runs) * tests as f64 <= 0.01);
            assert!(least_p_value(runs - 1, runs - 1) * tests as f64 > 0.01);
        }
    }

    proptest! {
        #[test]
        fn it_rejects_what_the_procedure_rejects(
            p_values in proptest::collection::vec(0.0f64..0.2, 1..12), level in 0.001f64..0.2) {
            // The published procedure goes down the sorted list until a p-value is too large.
            let mut sorted = p_values.clone();
            sorted.sort_by(f64::total_cmp);
            let count = sorted.len();
            let small = |&(index, p): &(usize, &f64)| p * (count - index) as f64 <= level;
            let rejected = sorted.iter().enumerate().take_while(small).count();
            let adjusted = holm_adjusted(&p_values);
            prop_assert_eq!(adjusted.iter().filter(|p| **p <= level).count(), rejected);
            prop_assert!(adjusted.iter().zip(&p_values).all(|(adjusted, p)| adjusted >= p));
        }
    }
}
