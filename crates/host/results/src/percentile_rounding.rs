// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds percentiles of samples that were sorted into buckets ([`hist`]). The value of a percentile is the same in
//! tables, charts and files.

use crate::{Bounds, Cell, Results, Stats};

/// A rounded percentile, and its accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The middle of the range in which the percentile can lie.
    pub value: u64,
    /// The largest possible distance between the percentile and `value`.
    pub within: u64,
}

impl Bounds {
    /// Returns the value to show for a percentile in `value`'s bucket: the middle of the bucket, after clipping the
    /// bucket to the samples' bounds. All values of a bucket give the same result, so a rounded value may be rounded
    /// again. `per_bucket` converts from ticks, which were sorted into buckets, to the unit of values: it is the number
    /// of units per tick.
    pub fn round_percentile(self, value: u64, per_bucket: f64) -> Rounded {
        let alike = hist::alike((value as f64 / per_bucket).round() as u64);
        let unit = |clock: u64| (clock as f64 * per_bucket).round() as u64;
        let (first, last) = (unit(alike.start), unit(alike.end - 1));
        let exact = Rounded { value, within: 0 };
        if first == last {
            return exact;
        }
        let middle = |first: u64, last: u64| {
            let within = (last - first).div_ceil(2);
            let value = first + within;
            Rounded { value, within }
        };
        let (low, high) = (first.max(self.min), last.min(self.max));
        match low <= high {
            true => middle(low, high),
            // The bucket is outside the samples' bounds because a unit conversion was rounded, or because the file
            // contradicts itself.
            false if (self.min..=self.max).contains(&value) => exact,
            false => middle(first, last),
        }
    }
}

impl Stats {
    fn round_stats(&mut self, per_bucket: f64) {
        let bounds = self.bounds();
        for percentile in [&mut self.p50, &mut self.p90, &mut self.p99, &mut self.p999] {
            *percentile = bounds.round_percentile(*percentile, per_bucket).value;
        }
    }
}

impl Cell {
    /// Replaces the percentiles, which are arbitrary values in their buckets, with the values to show.
    pub(crate) fn round_percentiles(&mut self, per_bucket: f64) {
        if let Some(stats) = &mut self.stats {
            stats.round_stats(per_bucket);
            let bounds = stats.bounds();
            for pass in &mut self.pass_p50 {
                *pass = bounds.round_percentile(*pass, per_bucket).value;
            }
        }
        for stage in &mut self.stages {
            stage.stats.round_stats(per_bucket);
        }
    }
}

impl Results {
    /// Replaces all cells' percentiles with the values to show, whichever values in their buckets the file has.
    pub fn round_percentiles(&mut self) {
        let of_core = (self.unit == "cycles").then_some(self.machine.core_hz);
        for cell in &mut self.cells {
            let hertz = cell.cycles_hz.or(of_core.filter(|&hertz| hertz > 0));
            cell.round_percentiles(units_per_tick(hertz, self.machine.cntfrq_hz));
        }
    }
}

/// Returns the length of a tick of the counter in the unit of values, which is core cycles if `cycles_hz` is
/// given.
pub(crate) fn units_per_tick(cycles_hz: Option<u64>, cntfrq_hz: u64) -> f64 {
    match cycles_hz {
        Some(hertz) if cntfrq_hz > 0 => hertz as f64 / cntfrq_hz as f64,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rounded without the bounds, these medians would be beyond the smallest or the largest sample.
    #[test]
    fn no_percentile_is_outside_of_the_samples() {
        let known = |value, min, max| {
            let Rounded { value, within } = Bounds { min, max }.round_percentile(value, 1.0);
            (value, within)
        };
        assert_eq!(known(21_330, 21_330, 30_000), (21_337, 7));
        assert_eq!(known(1420, 1420, 1420), (1420, 0));
        assert_eq!(known(20_568, 20_568, 20_900), (20_572, 4));
        assert_eq!(known(20_568, 10_000, 20_900), (20_560, 16));
        assert_eq!(known(20_568, 20_568, 20_568), (20_568, 0));
        assert_eq!(known(1023, 0, u64::MAX), (1023, 0));
        // This file contradicts itself: its median is below its minimum.
        assert_eq!(known(20_568, 30_000, 40_000), (20_560, 16));
    }

    #[test]
    fn every_percentile_of_a_cell_is_rounded() {
        let stats = |p50| Stats {
            count: 24,
            min: 1420,
            p50,
            p90: 1420,
            p99: 1420,
            p999: 1420,
            max: 1420,
            ..Stats::default()
        };
        let mut results = crate::samples::results();
        results.cells[1].stats = Some(stats(1421));
        results.cells[1].pass_p50 = vec![1421];
        results.round_percentiles();
        assert_eq!(results.cells[1].stats, Some(stats(1420)));
        assert_eq!(results.cells[1].pass_p50, [1420]);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_what_is_said_of_it(
            values in proptest::collection::vec(0u64..1 << 39, 3),
            per_bucket in prop_oneof![Just(1.0), 0.5f64..200.0],
        ) {
            let mut values = values;
            values.sort_unstable();
            let [min, value, max] = values[..] else { unreachable!() };
            let bounds = Bounds { min, max };
            let Rounded { value: shown, within } = bounds.round_percentile(value, per_bucket);
            prop_assert!((min..=max).contains(&shown));
            // The conversion of units rounds both ends of a bucket.
            prop_assert!(shown.abs_diff(value) <= within + per_bucket as u64 + 1);
            prop_assert!(per_bucket != 1.0 || shown.abs_diff(value) <= within);
            prop_assert_eq!(bounds.round_percentile(shown, per_bucket).value, shown);
        }
    }
}
