// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of a typical interval among the last stays.
//!
//! The average is typical if the deviation is small, at most 20 us or at most a
//! sixth of the average. If it is not, the sample farthest from the average is
//! left out (with its equals and what lies beyond), and it is tried again as long
//! as more than three quarters of the samples are there. What is left then has no
//! typical value, but of at least half of the samples the largest is a bound.
//!
//! Linux 6.15, `get_typical_interval()`. It has no square root, so it compares
//! variances; and it counts in us, so that their squares have room. Ours is that a
//! stay from 2^30 us (18 minutes) on counts as endless, where Linux has 2^32 - 1
//! us: the squares of eight fit into 64 bits, whose division is one instruction.

use crate::FOREVER;

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
    variance: u64,
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

    /// The typical stay, ns; [`FOREVER`] if there is none.
    pub fn typical_ns(&self) -> u64 {
        self.typical_us().map_or(FOREVER, |typical| typical * 1000)
    }

    fn typical_us(&self) -> Option<u64> {
        // Samples from `low` up to but without `high` count.
        let (mut low, mut high) = (0, ENDLESS_US);
        loop {
            let all = self.between(low, high)?;
            let enough = all.count * 4 >= INTERVALS as u64 * 3;
            let steady = all.average * all.average > SMALL_RATIO.saturating_mul(all.variance);
            if all.variance <= SMALL_VARIANCE || (steady && enough) {
                return Some(all.average);
            }
            if all.count * 4 <= INTERVALS as u64 * 3 {
                return (all.count * 2 >= INTERVALS as u64).then_some(all.max);
            }
            if all.average - all.min > all.max - all.average {
                low = all.min + 1;
            } else {
                high = all.max;
            }
        }
    }

    /// Nothing if they are all 0, or there are none.
    fn between(&self, low: u64, high: u64) -> Option<Summary> {
        let (mut count, mut sum, mut squares) = (0, 0, 0);
        let (mut min, mut max) = (u64::MAX, 0);
        for sample in self.samples.map(u64::from) {
            if (low..high).contains(&sample) {
                count += 1;
                sum += sample;
                squares += sample * sample;
                min = min.min(sample);
                max = max.max(sample);
            }
        }
        if max == 0 {
            return None;
        }
        let average = u64::checked_div(sum, count)?;
        Some(Summary {
            count,
            average,
            variance: (squares / count).saturating_sub(average * average),
            min,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typical(samples: [u32; INTERVALS]) -> Option<u64> {
        Intervals { samples, oldest: 0 }.typical_us()
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
    /// 10^4) / 6 = 2275000, variance 1172500; 1102500 > 36 * 1172500 is false. So
    /// the largest of them.
    #[test]
    fn without_a_typical_stay_there_is_a_bound() {
        assert_eq!(
            typical([100, 200, 400, 800, 1600, 3200, 6400, 12_800]),
            Some(3200)
        );
        // Of four that count, none steady, the largest.
        let long = 1 << 30;
        let four = [100, long, 5000, long, 20_000, long, 70_000, long];
        assert_eq!(typical(four), Some(70_000));
        // Five that are too long to count leave less than half.
        assert_eq!(typical([90, long, long, 700, long, long, 2000, long]), None);
    }

    #[test]
    fn nothing_but_zero_is_nothing() {
        assert_eq!(typical([0; INTERVALS]), None);
        let mut intervals = Intervals::new();
        intervals.add(u64::MAX);
        // The one that is too long to count is not counted.
        assert_eq!(intervals.typical_ns(), FOREVER);
    }
}
