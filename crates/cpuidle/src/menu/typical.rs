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
//! variances; and it counts in us, so that their squares have room. Ours is that a
//! stay from 2^30 us (18 minutes) on counts as endless, where Linux has 2^31 or 2^32 - 1
//! us: the squares of eight fit into 64 bits, whose division is one instruction.

/// Stays that are remembered.
const INTERVALS: usize = 8;
/// Variance that is always small, us^2.
const SMALL_VARIANCE: u64 = 400;
/// Square of the ratio of average and deviation that is small.
const SMALL_RATIO: u64 = 36;
/// A stay of at least this is endless, us.
const ENDLESS_US: u64 = 1 << 30;

/// The last stays, us.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    samples: [u32; INTERVALS],
    oldest: usize,
}

/// What is to be known of the samples between two values.
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

    /// Remembers a stay in place of the oldest.
    pub fn add(&mut self, stay_ns: u64) {
        self.samples[self.oldest % INTERVALS] = u32::try_from(stay_ns / 1000).unwrap_or(u32::MAX);
        self.oldest = (self.oldest + 1) % INTERVALS;
    }

    /// The typical stay, us, with outliers at both ends left out.
    pub fn typical(&self) -> Option<u64> {
        let (mut low, mut high) = (0, ENDLESS_US);
        loop {
            let kept = self.between(low, high).filter(|kept| kept.max != 0)?;
            if kept.is_steady(kept.mean_square.saturating_sub(kept.average * kept.average)) {
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

    /// As [`Self::typical_of_low`], if a stay of that kind may be below `bound_us`.
    pub fn typical_below(&self, bound_us: u64) -> Option<u64> {
        self.without_largest(|kept| kept.min >= bound_us)
    }

    fn without_largest(&self, hopeless: impl Fn(&Summary) -> bool) -> Option<u64> {
        let mut high = ENDLESS_US;
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

    /// Nothing if there are none.
    fn between(&self, low: u64, high: u64) -> Option<Summary> {
        let (mut count, mut sum, mut squares) = (0, 0, 0);
        let (mut min, mut max) = (u64::MAX, 0);
        for sample in self.within(low, high) {
            count += 1;
            sum += sample;
            squares += sample * sample;
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
        let steady = self.average * self.average > SMALL_RATIO.saturating_mul(variance);
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
        let long = 1 << 30;
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
        intervals.add(u64::MAX);
        // The one that is too long to count is not counted.
        assert_eq!(intervals.typical(), None);
        assert_eq!(intervals.typical_of_low(), None);
        // All are below what the timer says.
        assert_eq!(intervals.typical_below(1), Some(0));
    }
}
