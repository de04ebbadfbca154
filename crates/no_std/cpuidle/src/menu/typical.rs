// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects a typical interval among the last stays.
//!
//! The average is typical if the deviation is small: at most 20 us, or at most a sixth of the
//! average. Otherwise, outliers are dropped and the test repeats, as long as more than three
//! quarters of the samples remain.
//!
//! Up to Linux 6.14, the outliers are the largest samples. Since 6.15, they are the samples
//! farthest from the average.
//!
//! Source: `get_typical_interval()`. Like the source, this module compares variances instead of
//! taking a square root. Linux and this module keep 32 bits of each stay in us, and compute with 64
//! bits, which may wrap. Up to 6.14, a stay of 2^31 us (36 minutes) or more is ignored. Since
//! 6.15, only `u32::MAX`, which represents an unknown stay, is ignored.

/// Number of stays that are remembered.
const INTERVALS: usize = 8;
/// The largest variance that always counts as small, in us^2.
const SMALL_VARIANCE: u64 = 400;
/// Square of the ratio of average to deviation from which the deviation counts as small.
const SMALL_RATIO: u64 = 36;
/// An unknown sample.
const UNKNOWN: u32 = u32::MAX;
/// The smallest sample that releases up to 6.14 ignore, in us.
const LARGE_US: u64 = 1 << 31;

/// The last stays, us.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    samples: [u32; INTERVALS],
    oldest: usize,
}

/// Summary of the samples between two values.
struct Summary {
    count: u64,
    average: u64,
    mean_square: u64,
    min: u64,
    max: u64,
}

impl Intervals {
    /// Returns intervals that are all 0.
    pub const fn new() -> Self {
        Self {
            samples: [0; INTERVALS],
            oldest: 0,
        }
    }

    /// Replaces the oldest stay with `stay_ns`, as the low 32 bits of its length in us.
    pub const fn add_stay(&mut self, stay_ns: u64) {
        self.push_sample((stay_ns / 1000) as u32);
    }

    /// Remembers a stay of unknown length, or one that did not take place.
    pub const fn add_unknown(&mut self) {
        self.push_sample(UNKNOWN);
    }

    const fn push_sample(&mut self, sample: u32) {
        self.samples[self.oldest % INTERVALS] = sample;
        self.oldest = (self.oldest + 1) % INTERVALS;
    }

    /// Returns the typical stay, us, with outliers at both ends left out.
    pub fn typical_stay(&self) -> Option<u64> {
        let (mut low, mut high) = (0, u64::from(UNKNOWN));
        loop {
            let kept = self.summary(low, high).filter(|kept| kept.max != 0)?;
            let square = kept.average.wrapping_mul(kept.average);
            if kept.is_steady(kept.mean_square.wrapping_sub(square)) {
                return Some(kept.average);
            }
            if !kept.can_spare() {
                return None;
            }
            if kept.average - kept.min > kept.max - kept.average {
                low = kept.min + 1;
            } else {
                high = kept.max;
            }
        }
    }

    /// Returns the typical stay, us, with only the largest outliers left out.
    pub fn typical_of_low(&self) -> Option<u64> {
        self.without_largest(|kept| kept.max == 0)
    }

    /// Like [`Self::typical_of_low`], but gives up when all remaining stays are at least `bound_us`.
    pub fn typical_below(&self, bound_us: u64) -> Option<u64> {
        self.without_largest(|kept| kept.min >= bound_us)
    }

    fn without_largest(&self, hopeless: impl Fn(&Summary) -> bool) -> Option<u64> {
        let mut high = LARGE_US;
        loop {
            let kept = self.summary(0, high)?;
            if hopeless(&kept) {
                return None;
            }
            let squares = self
                .samples_within(0, high)
                .map(|sample| sample.abs_diff(kept.average).pow(2));
            if kept.is_steady(squares.sum::<u64>() / kept.count) {
                return Some(kept.average);
            }
            if !kept.can_spare() {
                return None;
            }
            high = kept.max;
        }
    }

    /// Samples from `low` up to, but excluding, `high`.
    fn samples_within(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        let samples = self.samples.into_iter().map(u64::from);
        samples.filter(move |sample| (low..high).contains(sample))
    }

    /// Summarises the samples from `low` up to, but excluding, `high`; `None` without samples.
    fn summary(&self, low: u64, high: u64) -> Option<Summary> {
        let (mut count, mut sum, mut squares) = (0, 0, 0_u64);
        let (mut min, mut max) = (u64::MAX, 0);
        for sample in self.samples_within(low, high) {
            count += 1;
            sum += sample;
            squares = squares.wrapping_add(sample * sample);
            min = min.min(sample);
            max = max.max(sample);
        }
        Some(Summary {
            average: u64::checked_div(sum, count)?,
            mean_square: u64::checked_div(squares, count)?,
            count,
            min,
            max,
        })
    }
}

impl Summary {
    /// Whether the average is typical.
    const fn is_steady(&self, variance: u64) -> bool {
        let enough = self.count * 4 >= INTERVALS as u64 * 3;
        let square = self.average.wrapping_mul(self.average);
        let steady = match SMALL_RATIO.checked_mul(variance) {
            Some(least) => square > least,
            None => false,
        };
        variance <= SMALL_VARIANCE || (steady && enough)
    }

    /// Whether outliers may be left out.
    const fn can_spare(&self) -> bool {
        self.count * 4 > INTERVALS as u64 * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_zero_is_nothing() {
        assert_eq!(Intervals::new().typical_stay(), None);
        let mut intervals = Intervals::new();
        intervals.add_unknown();
        // The unknown stay does not count.
        assert_eq!(intervals.typical_stay(), None);
        assert_eq!(intervals.typical_of_low(), None);
        // All samples are below the bound.
        assert_eq!(intervals.typical_below(1), Some(0));
    }

    /// 2^32 * 1000 + 7000 ns are 2^32 + 7 us. The low 32 bits are 7. A stay of 2^31 us counts since
    /// 6.15. But the squares of eight such stays add up to 2^65, whose low 64 bits are 0, and 0 - 2^62 is
    /// not a variance.
    #[test]
    fn what_is_long_wraps() {
        let mut intervals = Intervals::new();
        intervals.add_stay((1 << 32) * 1000 + 7000);
        assert_eq!(intervals.samples[0], 7);
        let some = |samples| Intervals { samples, oldest: 0 };
        let [one, long] = [70, 1 << 31];
        let mixed = some([one, long, one, one, long, one, one, one]);
        assert_eq!(
            (mixed.typical_stay(), mixed.typical_of_low()),
            (Some(70), Some(70))
        );
        let all = some([long; INTERVALS]);
        assert_eq!((all.typical_stay(), all.typical_of_low()), (None, None));
        let less = some([long - 1; INTERVALS]);
        assert_eq!(less.typical_of_low(), Some((1 << 31) - 1));
    }
}
