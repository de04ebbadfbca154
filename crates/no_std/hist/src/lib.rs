// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implements a log-linear histogram in fixed memory.
//!
//! Each value below 1024 has its own bucket, so that a path length in instructions is
//! kept exactly. Above that, every power of two is divided into 512 buckets, so that a
//! value is known with a precision of 0.2 %. The bucketing is that of G. Tene's HdrHistogram with 9
//! sub-bucket bits.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod ratio;
mod repeats;

pub use ratio::{Ratio, Unusable};
pub use repeats::{ENOUGH, QUANTILES};

use core::ops::Range;

/// Binary logarithm of the number of buckets per power of two.
const SUB_BITS: u32 = 9;
/// The limit below which values are counted exactly.
const EXACT: u64 = 2 << SUB_BITS;
/// Values from here on are counted in the last bucket.
const LIMIT: u64 = 1 << 40;
/// Number of buckets.
pub const BUCKETS: usize = index(LIMIT - 1) + 1;

/// Returns the bucket that counts `value`.
#[must_use]
pub const fn index(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let value = if value < LIMIT { value } else { LIMIT - 1 };
    let shift = value.ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// Returns the lowest value that bucket `index` counts.
#[must_use]
pub const fn lowest_in(index: usize) -> u64 {
    if (index as u64) < EXACT {
        return index as u64;
    }
    let shift = (index >> SUB_BITS) - 1;
    let mantissa = index - (shift << SUB_BITS);
    (mantissa as u64) << shift
}

/// Returns the values that the bucket of `value` counts; the last bucket also counts larger ones.
#[must_use]
pub const fn alike(value: u64) -> Range<u64> {
    let bucket = index(value);
    lowest_in(bucket)..lowest_in(bucket + 1)
}

/// Counts of values. All zeroes are an empty histogram, so zeroed memory of an arena can serve as
/// one, and none has to be built on the stack.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [u32; BUCKETS],
    count: u64,
    sum: u64,
    /// Complement of the smallest value, so that zero means that there is no value.
    min_complement: u64,
    max: u64,
}

impl Histogram {
    /// Creates an empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            counts: [0; BUCKETS],
            count: 0,
            sum: 0,
            min_complement: 0,
            max: 0,
        }
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        let used = self.used();
        self.counts[used].fill(0);
        (self.count, self.sum, self.min_complement, self.max) = (0, 0, 0, 0);
    }

    /// Counts `value`.
    pub const fn record(&mut self, value: u64) {
        let bucket = &mut self.counts[index(value)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        if !value > self.min_complement {
            self.min_complement = !value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Returns the number of values that were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the exact smallest value; 0 if the histogram is empty.
    #[must_use]
    pub const fn min(&self) -> u64 {
        if self.count == 0 {
            0
        } else {
            !self.min_complement
        }
    }

    /// Returns the exact largest value; 0 if the histogram is empty.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the value that `per_mille` thousandths of the values do not exceed (nearest rank); 0
    /// if the histogram is empty.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let found = nearest_rank(self.buckets(), self.count, per_mille);
        found.map_or(0, |value| value.clamp(self.min(), self.max))
    }

    /// Iterates over the non-empty buckets, each as its lowest value and its count, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> {
        self.used()
            .map(|index| (lowest_in(index), self.counts[index]))
            .filter(|&(_, count)| count != 0)
    }

    /// Returns the range of buckets that may have counted values, from the smallest value's bucket
    /// to the largest value's, so that no code needs to read the thousands of other buckets.
    fn used(&self) -> Range<usize> {
        match self.count {
            0 => 0..0,
            _ => index(self.min())..index(self.max) + 1,
        }
    }
}

/// Returns a percentile's rank, from 1, in `count` sorted values: the lowest rank at which at least
/// `per_mille`/1000 of the values have this rank or a lower one (nearest rank). Every percentile
/// and every median in Rouse is the value with this rank.
#[must_use]
pub const fn rank(count: u64, per_mille: u64) -> u64 {
    let rank = (count * per_mille).div_ceil(1000);
    if rank == 0 { 1 } else { rank }
}

/// Returns the percentile of `values` in ascending order, each with its number of occurrences;
/// these numbers add up to `count`. Returns `None` if there are no values.
pub fn nearest_rank<N: Into<u64>>(
    values: impl IntoIterator<Item = (u64, N)>,
    count: u64,
    per_mille: u64,
) -> Option<u64> {
    let rank = rank(count, per_mille);
    let mut seen = 0;
    for (value, times) in values {
        seen += times.into();
        if seen >= rank {
            return Some(value);
        }
    }
    None
}

/// Returns the percentile of values in ascending order, or `None` if there are no values.
#[must_use]
pub fn of_sorted<T>(values: &[T], per_mille: u64) -> Option<&T> {
    values.get(rank(values.len() as u64, per_mille) as usize - 1)
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous() {
        for bucket in 0..BUCKETS {
            assert_eq!(index(lowest_in(bucket)), bucket);
            if bucket > 0 {
                assert_eq!(index(lowest_in(bucket) - 1), bucket - 1);
            }
        }
    }

    #[test]
    fn values_of_a_bucket_are_alike() {
        assert_eq!(
            [alike(1023), alike(1024), alike(1025), alike(20_589)],
            [1023..1024, 1024..1026, 1024..1026, 20_576..20_608]
        );
        for value in [0, 1, 2047, 2048, 1_000_000] {
            assert!(alike(value).contains(&value));
            assert_eq!(alike(alike(value).start), alike(value));
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_of_the_middle_two() {
        let medians = [&[][..], &[7], &[7, 9], &[5, 7, 9], &[5, 7, 9, 11]];
        let medians = medians.map(|values: &[u64]| of_sorted(values, 500).copied());
        assert_eq!(medians, [None, Some(7), Some(7), Some(7), Some(7)]);
        let ten: [u64; 10] = core::array::from_fn(|n| n as u64 + 1);
        let all = [0, 500, 900, 990, 1000].map(|per_mille| of_sorted(&ten, per_mille).copied());
        assert_eq!(all, [1, 5, 9, 10, 10].map(Some));
        assert_eq!(nearest_rank([(3, 2u64), (4, 2)], 4, 500), Some(3));
        assert_eq!(nearest_rank([(3, 0u64); 0], 0, 500), None);
    }

    #[test]
    fn an_empty_one_answers_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.quantile(500)), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket(mut values in proptest::collection::vec(0u64..1 << 41, 1..300),
            per_mille in 1u64..=1000) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            values.sort_unstable();
            let rank = (values.len() as u64 * per_mille).div_ceil(1000).max(1);
            let exact = values[rank as usize - 1];
            let bucket = lowest_in(index(exact)).clamp(values[0], values[values.len() - 1]);
            prop_assert_eq!(histogram.quantile(per_mille), bucket);
            prop_assert_eq!(histogram.min(), values[0]);
            prop_assert_eq!(histogram.max(), values[values.len() - 1]);
        }
    }
}
