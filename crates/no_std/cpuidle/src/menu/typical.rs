// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of a typical interval among the last stays.
//!
//! The average is typical if the deviation is small, at most 20 us or at most a
//! sixth of the average. If it is not, outliers are left out, and it is tried again as
//! long as more than three quarters of the samples are there.
//!
//! Until Linux 6.14 the outliers are the largest samples. Since 6.15 they are those
//! farthest from the average, with what lies beyond.
//!
//! Source: `get_typical_interval()`. It has no square root, so it compares
//! variances. It keeps 32 bits of each stay in us, and computes with 64: both wrap, there
//! and here. Until 6.14 a stay of 2^31 us (36 minutes) or more never counts; since 6.15
//! only 2^32 - 1 does not, which stands for an unknown stay.

/// Stays that are remembered.
const INTERVALS: usize = 8;
/// Variance that is always small, us^2.
const SMALL_VARIANCE: u64 = 400;
/// Square of the ratio of average and deviation that is small.
const SMALL_RATIO: u64 = 36;
/// A sample that is not known.
const UNKNOWN: u32 = u32::MAX;
/// The first of the large samples that never count until 6.14, us.
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
    /// All 0.
    pub const fn new() -> Self {
        Self {
            samples: [0; INTERVALS],
            oldest: 0,
        }
    }

    /// Remembers a stay in place of the oldest; of its us, 32 bits.
    pub const fn add(&mut self, stay_ns: u64) {
        self.put((stay_ns / 1000) as u32);
    }

    /// Remembers that there was a stay, or would have been.
    pub const fn add_unknown(&mut self) {
        self.put(UNKNOWN);
    }

    const fn put(&mut self, sample: u32) {
        self.samples[self.oldest % INTERVALS] = sample;
        self.oldest = (self.oldest + 1) % INTERVALS;
    }

    /// The typical stay, us, with outliers at both ends left out.
    pub fn typical(&self) -> Option<u64> {
        let (mut low, mut high) = (0, u64::from(UNKNOWN));
        loop {
            let kept = self.between(low, high).filter(|kept| kept.max != 0)?;
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

    /// The typical stay, us, with only the largest ones left out.
    pub fn typical_of_low(&self) -> Option<u64> {
        self.without_largest(|kept| kept.max == 0)
    }

    /// Like [`Self::typical_of_low`], if a stay of that kind may be below `bound_us`.
    pub fn typical_below(&self, bound_us: u64) -> Option<u64> {
        self.without_largest(|kept| kept.min >= bound_us)
    }

    fn without_largest(&self, hopeless: impl Fn(&Summary) -> bool) -> Option<u64> {
        let mut high = LARGE_US;
        loop {
            let kept = self.between(0, high)?;
            if hopeless(&kept) {
                return None;
            }
            let squares = self
                .within(0, high)
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

    /// Samples from `low` up to but without `high`.
    fn within(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        let samples = self.samples.into_iter().map(u64::from);
        samples.filter(move |sample| (low..high).contains(sample))
    }

    /// `None` without samples.
    fn between(&self, low: u64, high: u64) -> Option<Summary> {
        let (mut count, mut sum, mut squares) = (0, 0, 0_u64);
        let (mut min, mut max) = (u64::MAX, 0);
        for sample in self.within(low, high) {
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

    fn typical(samples: [u32; INTERVALS]) -> Option<u64> {
        Intervals { samples, oldest: 0 }.typical()
    }

    /// 4 * 90 + 4 * 110: average 100, mean square (8100 + 12100) / 2 = 10100,
    /// variance 100 <= 400.
    #[test]
    fn a_small_deviation_is_typical() {
        assert_eq!(typical([90, 110, 90, 110, 90, 110, 90, 110]), Some(100));
        // 900 and 1100: variance 10^4, 10^6 > 36 * 10^4.
        assert_eq!(
            typical([900, 1100, 900, 1100, 900, 1100, 900, 1100]),
            Some(1000)
        );
    }

    /// Six of 100 and two of 5000: average 1325, variance far too large. 5000 is
    /// farther from it than 100, and both go: average 100, variance 0.
    #[test]
    fn outliers_are_left_out() {
        assert_eq!(
            typical([100, 5000, 100, 100, 100, 5000, 100, 100]),
            Some(100)
        );
        // Two of 1 below: average (6 * 1000 + 2) / 8 = 750, 749 > 250.
        assert_eq!(
            typical([1000, 1, 1000, 1000, 1000, 1, 1000, 1000]),
            Some(1000)
        );
    }

    /// 100 200 400 800 1600 3200 6400 12800: average 3187. 12800 goes (9613 > 3087);
    /// of 7, average 1814, mean square 7800000: 6400 goes. Six are left: average
    /// 1050, mean square (10^4 + 4 * 10^4 + 16 * 10^4 + 64 * 10^4 + 256 * 10^4 + 1024 *
    /// 10^4) / 6 = 2275000, variance 1172500; 1102500 > 36 * 1172500 is false.
    #[test]
    fn without_a_steady_stay_there_is_none() {
        assert_eq!(
            typical([100, 200, 400, 800, 1600, 3200, 6400, 12_800]),
            None
        );
        let long = UNKNOWN;
        let four = [100, long, 5000, long, 20_000, long, 70_000, long];
        assert_eq!(typical(four), None);
        // Three that do not differ are typical, whatever the rest was.
        let three = [90, long, long, 90, long, long, 90, long];
        assert_eq!(typical(three), Some(90));
    }

    /// Six of 1000 and two of 1: average 750, variance (6 * 250^2 + 2 * 749^2) / 8 =
    /// 187125. The largest go: two are left, 1 and 1, whose variance is 0.
    #[test]
    fn early_releases_leave_out_only_the_largest() {
        let samples = [1000, 1, 1000, 1000, 1000, 1, 1000, 1000];
        let intervals = Intervals { samples, oldest: 0 };
        assert_eq!(intervals.typical_of_low(), Some(1));
        assert_eq!(intervals.typical(), Some(1000));
        // Two of 5000 go, and the rest is steady.
        let samples = [100, 5000, 100, 100, 100, 5000, 100, 100];
        let intervals = Intervals { samples, oldest: 0 };
        assert_eq!(intervals.typical_of_low(), Some(100));
        // 100 is not below 100, but is below 101.
        assert_eq!(intervals.typical_below(100), None);
        assert_eq!(intervals.typical_below(101), Some(100));
    }

    #[test]
    fn nothing_but_zero_is_nothing() {
        assert_eq!(typical([0; INTERVALS]), None);
        let mut intervals = Intervals::new();
        intervals.add_unknown();
        // The unknown stay does not count.
        assert_eq!(intervals.typical(), None);
        assert_eq!(intervals.typical_of_low(), None);
        // All are below the timer.
        assert_eq!(intervals.typical_below(1), Some(0));
    }

    /// 2^32 * 1000 + 7000 ns are 2^32 + 7 us, of which 32 bits are 7. A stay of 2^31 us
    /// counts since 6.15; but eight squares of it are 2^65, of which 64 bits are 0, and
    /// 0 - 2^62 is not a variance.
    #[test]
    fn what_is_long_wraps() {
        let mut intervals = Intervals::new();
        intervals.add((1 << 32) * 1000 + 7000);
        assert_eq!(intervals.samples[0], 7);
        let some = |samples| Intervals { samples, oldest: 0 };
        let [one, long] = [70, 1 << 31];
        let mixed = some([one, long, one, one, long, one, one, one]);
        assert_eq!(
            (mixed.typical(), mixed.typical_of_low()),
            (Some(70), Some(70))
        );
        let all = some([long; INTERVALS]);
        assert_eq!((all.typical(), all.typical_of_low()), (None, None));
        let less = some([long - 1; INTERVALS]);
        assert_eq!(less.typical_of_low(), Some((1 << 31) - 1));
    }
}
