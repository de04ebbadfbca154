// SPDX-License-Identifier: MIT OR Apache-2.0
//! Medians with confidence intervals, from histograms.
//!
//! The interval is between two order statistics, whatever the distribution of the
//! samples: the number of n samples that are at most v is binomial, with the part of
//! all samples that is at most v. Where half of the samples or more are at most v with
//! a probability below the tail, the median is above v. No random numbers are drawn.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Values with their counts, ascending.
pub type Histogram = [(u64, u64)];

/// Probability that is left out at either end of the interval: 95 % remain.
const TAIL: f64 = 0.025;
/// From this variance on the binomial distribution is taken for a normal one.
const NORMAL: f64 = 400.0;

/// A median, and the interval that it lies in with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Median {
    /// The median.
    pub value: u64,
    /// Lower end of the interval.
    pub low: u64,
    /// Upper end of the interval.
    pub high: u64,
}

impl Median {
    /// That of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let count: u64 = histogram.iter().map(|bucket| bucket.1).sum();
        // Nearest rank, like everywhere else.
        let half = count.div_ceil(2);
        let quantile = |tail: f64| {
            let mut below = 0;
            histogram.iter().find_map(|&(value, samples)| {
                below += samples;
                let part = below as f64 / count as f64;
                (at_least(half, count, part) >= tail).then_some(value)
            })
        };
        let mut below = 0;
        let value = histogram.iter().find_map(|&(value, samples)| {
            below += samples;
            (below >= half).then_some(value)
        });
        let (low, high) = (quantile(TAIL), quantile(1.0 - TAIL));
        (count > 0).then_some(Self {
            value: value?,
            low: low?,
            high: high?,
        })
    }

    /// Whether the intervals have no value in common.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.high < other.low || other.high < self.low
    }
}

/// Probability that of `count` draws at least `least`, which is not 0, succeed, each
/// with probability `part`.
fn at_least(least: u64, count: u64, part: f64) -> f64 {
    if part >= 1.0 {
        return 1.0;
    }
    let variance = count as f64 * part * (1.0 - part);
    if variance > NORMAL {
        normal(least, count, part)
    } else {
        exactly(least, count, part)
    }
}

/// The same, exactly.
fn exactly(least: u64, count: u64, part: f64) -> f64 {
    let draws = Binomial::new(part, count).expect("a part of all samples is a probability");
    draws.sf(least - 1)
}

/// The same, with the continuity correction.
fn normal(least: u64, count: u64, part: f64) -> f64 {
    let middle = count as f64 * part;
    let deviation = (middle * (1.0 - part)).sqrt();
    let draws = Normal::new(middle, deviation).expect("a variance above 0 has a root");
    draws.sf(least as f64 - 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_certain() {
        let median = Median::of(&[(77, 2000)]).unwrap();
        assert_eq!((median.low, median.value, median.high), (77, 77, 77));
        assert_eq!(Median::of(&[]), None);
        assert_eq!(Median::of(&[(3, 1)]).unwrap().value, 3);
    }

    #[test]
    fn the_interval_is_that_of_the_order_statistics() {
        // 100 different values: ranks 40 and 60 are the textbook's, one more
        // or less by where the half of an even number is put.
        let values: Vec<(u64, u64)> = (1..=100).map(|value| (value, 1)).collect();
        let median = Median::of(&values).unwrap();
        assert_eq!(median.value, 50);
        assert!((39..=41).contains(&median.low), "{median:?}");
        assert!((59..=61).contains(&median.high), "{median:?}");
    }

    #[test]
    fn both_ways_to_compute_agree() {
        for (least, count, part) in [(800, 1600, 0.5), (800, 1601, 0.48), (900, 1700, 0.55)] {
            let normal = normal(least, count, part);
            let exact = exactly(least, count, part);
            assert!((normal - exact).abs() < 1e-3, "{normal} {exact}");
        }
    }

    #[test]
    fn more_samples_make_it_narrower() {
        let spread = |samples: u64| {
            let values: Vec<(u64, u64)> = (0..1000).map(|value| (value, samples)).collect();
            let median = Median::of(&values).unwrap();
            median.high - median.low
        };
        assert!(spread(100) < spread(1) / 5);
    }
}
