// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether the values of a pass repeat the values of the previous pass.
//!
//! A pass repeats another if both have [`ENOUGH`] values and each of [`QUANTILES`], which tables
//! print, falls into the same bucket in both passes. A bucket is one value wide below 1024, and 0.2
//! % wide above.
//!
//! The comparison is between passes rather than samples: successive samples are alike, so the
//! spread within a pass says little about the precision of its median. Two passes of a cell are
//! further apart: other cells usually run between them.
//!
//! Ending a cell for this reason does not bias its median: the two passes are treated alike and
//! only compared with each other, never with a third number, so the rule does not depend on whether
//! their values are high or low. The two passes' medians are in one bucket. The median of all their
//! values is between these medians, so it equals the median that each pass has found by itself.

use crate::{Histogram, index, lowest_in, nearest_rank};

/// The quantiles of a distribution that are printed, in thousandths.
pub const QUANTILES: [(&str, u64); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)];

/// Number of values that a pass must have to be judged. With fewer values, the 99th percentile is
/// the largest value.
pub const ENOUGH: u64 = 100;

impl Histogram {
    /// Makes this histogram a copy of `other`.
    pub fn copy_from(&mut self, other: &Self) {
        self.clear();
        let used = other.used();
        self.counts[used.clone()].copy_from_slice(&other.counts[used]);
        self.count = other.count;
        self.sum = other.sum;
        self.min_complement = other.min_complement;
        self.max = other.max;
    }

    /// Whether the values counted since `before`, an earlier state of this histogram, repeat the values
    /// counted until then.
    ///
    /// # Panics
    /// Panics if a bucket of `before` counted more values than the same bucket of `self`, so that
    /// `before` is not an earlier state.
    #[must_use]
    pub fn repeats(&self, before: &Self) -> bool {
        let (first, second) = (before.count, self.count - before.count);
        if first < ENOUGH || second < ENOUGH {
            return false;
        }
        let since = || {
            let new = |index: usize| self.counts[index] - before.counts[index];
            self.used().map(move |index| (lowest_in(index), new(index)))
        };
        QUANTILES.iter().all(|&(_, per_mille)| {
            let first = nearest_rank(before.buckets(), first, per_mille);
            let second = nearest_rank(since(), second, per_mille);
            first.map(index) == second.map(index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether `second` repeats `first`.
    fn judged(first: &[u64], second: &[u64]) -> bool {
        let (mut all, mut before) = (Histogram::new(), Histogram::new());
        // Values that an earlier cell left in the copy have no influence.
        before.record(7);
        first.iter().for_each(|&value| all.record(value));
        before.copy_from(&all);
        second.iter().for_each(|&value| all.record(value));
        all.repeats(&before)
    }

    fn pass(common: u64, count: usize, rare: &[u64]) -> Vec<u64> {
        let mut values = vec![common; count];
        values.extend(rare);
        values
    }

    #[test]
    fn what_is_the_same_again_repeats() {
        assert!(judged(&pass(190, 499, &[212]), &pass(190, 499, &[212])));
        // Two times repeat if they fall into one bucket.
        assert!(judged(&pass(100_000, 200, &[]), &pass(100_001, 200, &[])));
    }

    #[test]
    fn another_median_or_another_tail_does_not() {
        assert!(!judged(&pass(190, 500, &[]), &pass(191, 500, &[])));
        assert!(!judged(&pass(190, 493, &[]), &pass(190, 493, &[300; 7])));
        assert!(!judged(&pass(190, 493, &[300; 7]), &pass(190, 500, &[])));
        assert!(!judged(&pass(100_000, 200, &[]), &pass(101_000, 200, &[])));
    }

    #[test]
    fn few_values_say_nothing() {
        assert!(!judged(&pass(190, 99, &[]), &pass(190, 500, &[])));
        assert!(!judged(&pass(190, 500, &[]), &pass(190, 99, &[])));
        assert!(!judged(&[], &[]));
    }

    proptest! {
        #[test]
        fn the_judgement_does_not_know_which_came_first_nor_where_they_are(
            first in proptest::collection::vec(1u64..40, 100..140),
            second in proptest::collection::vec(1u64..40, 100..140), by in 0u64..900) {
            let moved = |values: &[u64]| values.iter().map(|value| value + by).collect::<Vec<_>>();
            let here = judged(&first, &second);
            prop_assert_eq!(judged(&second, &first), here);
            prop_assert_eq!(judged(&moved(&first), &moved(&second)), here);
        }

        #[test]
        fn the_median_of_what_repeats_is_that_of_each_pass(
            first in proptest::collection::vec(1u64..4, 100..140),
            second in proptest::collection::vec(1u64..4, 100..140)) {
            prop_assume!(judged(&first, &second));
            let median = |values: &[u64]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|&value| histogram.record(value));
                histogram.quantile(500)
            };
            let both = [first.clone(), second].concat();
            prop_assert_eq!(median(&both), median(&first));
        }
    }
}
