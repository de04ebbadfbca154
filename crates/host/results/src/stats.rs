// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of a cell's samples and stages, in the format of `results.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of samples.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Stats {
    /// Number of samples.
    pub count: u64,
    /// Smallest sample.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest sample.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// The smallest and the largest of some samples. All other statistics of these samples are within these bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest sample.
    pub min: u64,
    /// The largest sample.
    pub max: u64,
}

impl Bounds {
    /// Bounds that restrict nothing.
    pub const NONE: Self = Self {
        min: 0,
        max: u64::MAX,
    };
}

impl Stats {
    /// Returns the smallest and the largest sample.
    pub const fn bounds(&self) -> Bounds {
        Bounds {
            min: self.min,
            max: self.max,
        }
    }
}

/// A part of the samples of a cell, between two time stamps.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its statistics.
    #[serde(flatten)]
    pub stats: Stats,
}

impl Stats {
    /// Computes the statistics of values, given how often each occurs. Percentiles are nearest-rank values.
    pub fn of(values: &BTreeMap<u64, u64>) -> Self {
        let count: u64 = values.values().sum();
        let sum: u64 = values.iter().map(|(value, times)| value * times).sum();
        let rank = |per_mille: u64| {
            let values = values.iter().map(|(&value, &times)| (value, times));
            hist::nearest_rank(values, count, per_mille).unwrap_or(0)
        };
        Self {
            count,
            min: values.keys().next().copied().unwrap_or(0),
            p50: rank(500),
            p90: rank(900),
            p99: rank(990),
            p999: rank(999),
            max: values.keys().next_back().copied().unwrap_or(0),
            mean: match count {
                0 => 0.0,
                _ => sum as f64 / count as f64,
            },
        }
    }

    /// Whether there are enough samples for the percentile at `per_mille` thousandths. Ten samples must be above it, so
    /// that the few largest ones do not decide its value.
    pub const fn supports(&self, per_mille: u64) -> bool {
        self.count * (1000 - per_mille) >= Self::BEYOND * 1000
    }

    /// Returns the smallest number of samples that is enough for the percentile at `per_mille` thousandths, which must
    /// be below 1000.
    pub const fn samples_needed(per_mille: u64) -> u64 {
        (Self::BEYOND * 1000).div_ceil(1000 - per_mille)
    }

    /// Number of samples that must be above a percentile.
    const BEYOND: u64 = 10;
}
