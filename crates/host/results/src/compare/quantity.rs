// SPDX-License-Identifier: MIT OR Apache-2.0
//! The quantities of a cell that are compared.

use significance::median;

use crate::{Bounds, Cell, Counts, Stats};

/// A quantity to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The median of the samples. If samples are divided into path and other work, they count the work of all CPUs. For
    /// a run, this is the median of the medians of its passes.
    Median,
    /// The median of the path without bookkeeping, if samples are divided into path and other work.
    Path,
    /// The 90th percentile of the samples.
    P90,
    /// The 99th percentile of the samples.
    P99,
    /// The mean of the samples, to a hundredth, if values repeat exactly; it changes if any sample changes. If samples
    /// are divided into path and other work, the mean covers only samples whose path is known, because in one of
    /// thousands of samples, the emulator may switch CPUs at a different point.
    Mean,
    /// The largest of the samples that [`Self::Mean`] covers, if values repeat exactly.
    Max,
    /// Exits to EL2 per sample, for all causes, to a hundredth.
    Exits,
    /// Interrupts sent between CPUs, per sample, to a hundredth.
    Ipis,
    /// Interrupts that the guest took, per sample, to a hundredth, if values repeat exactly.
    Irqs,
    /// Polls that ended at their limit, per sample, to a hundredth, if values repeat exactly.
    Timeouts,
}

impl Quantity {
    /// All quantities in the order of reports, with the most important ones first.
    pub const ALL: [Self; 10] = [
        Self::Median,
        Self::Path,
        Self::P90,
        Self::P99,
        Self::Mean,
        Self::Max,
        Self::Exits,
        Self::Ipis,
        Self::Irqs,
        Self::Timeouts,
    ];

    /// Returns the quantity's name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Median => "median",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Max => "maximum",
            Self::Exits => "exits",
            Self::Ipis => "IPIs",
            Self::Irqs => "interrupts taken",
            Self::Timeouts => "timeouts",
        }
    }

    /// Whether the quantity is a number of events per sample, or a mean. Other quantities are values of samples.
    pub const fn is_rate(self) -> bool {
        match self {
            Self::Mean | Self::Exits | Self::Ipis | Self::Irqs | Self::Timeouts => true,
            Self::Path | Self::Median | Self::P90 | Self::P99 | Self::Max => false,
        }
    }

    /// Whether the quantity decides the verdict on a cell that has it.
    pub const fn decides_verdict(self) -> bool {
        matches!(self, Self::Median)
    }

    /// Returns the bounds of the samples, if they were sorted into buckets and the quantity is a percentile. `None` for
    /// exact figures.
    pub(super) fn bounds(self, cell: &Cell) -> Option<Bounds> {
        match self {
            Self::Median | Self::P90 | Self::P99 => Some(cell.stats?.bounds()),
            _ => None,
        }
    }

    /// Returns the figure of one run. `None` if the run lacks the quantity, or has too few samples for it.
    pub fn figure_of(self, cell: &Cell, how: How) -> Option<f64> {
        let stats = cell.stats?;
        // If samples repeat exactly, the few largest ones are as reliable as the others.
        let tail = |per_mille, value: u64| {
            (how.exact || stats.supports(per_mille)).then_some(value as f64)
        };
        let rate = |counts: Option<&Counts>, name: &str| {
            let counts = counts.filter(|counts| counts.contains_key(name))?;
            Some(round_to_hundredths(cell.per_sample(counts, name)))
        };
        let clear = clear_stats(cell, how)?;
        let repeats = how.exact && clear.count > 0;
        match self {
            Self::Path => {
                let net = cell.critical.as_ref().filter(|_| how.apart)?.net;
                net.supports(500).then_some(net.p50 as f64)
            }
            Self::Median => {
                let passes: Vec<f64> = cell.pass_p50.iter().map(|&pass| pass as f64).collect();
                let known = cell.stats_with_median().is_some();
                known.then(|| median(&passes).unwrap_or(stats.p50 as f64))
            }
            Self::P90 => tail(900, stats.p90),
            Self::P99 => tail(990, stats.p99),
            Self::Mean => repeats.then(|| round_to_hundredths(clear.mean)),
            Self::Max => repeats.then_some(clear.max as f64),
            Self::Exits => exits_per_sample(cell, how.apart),
            Self::Ipis => rate(Some(&cell.ipis), "sent"),
            Self::Irqs => rate(cell.counters.get("irq").filter(|_| how.exact), "taken"),
            Self::Timeouts => rate(Some(&cell.wakes).filter(|_| how.exact), "timeout"),
        }
    }
}

/// Properties of the compared runs that determine which figures exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether the samples of all runs are divided into path and other work.
    pub apart: bool,
    /// Whether values repeat exactly from run to run.
    pub exact: bool,
}

/// Returns the statistics of the samples whose path is known, or of all samples if [`How::apart`] is false.
pub(super) fn clear_stats(cell: &Cell, how: How) -> Option<Stats> {
    match &cell.critical {
        Some(critical) if how.apart => Some(critical.parties),
        _ => cell.stats,
    }
}

fn exits_per_sample(cell: &Cell, apart: bool) -> Option<f64> {
    let exits = match apart {
        true => cell.exits_of_samples(),
        false => &cell.exits,
    };
    let each = |name: &String| match apart {
        true => cell.exits_per_sample(name),
        false => cell.per_sample(exits, name),
    };
    let sum: f64 = exits.keys().map(each).sum();
    (!exits.is_empty()).then(|| round_to_hundredths(sum))
}

fn round_to_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stats;
    use crate::samples::measured_cell;
    use plan::Wait;

    const TIME: How = How {
        apart: false,
        exact: false,
    };

    fn measured(count: u64) -> Cell {
        let stats = Stats {
            count,
            p50: 80,
            p90: 90,
            p99: 99,
            ..Stats::default()
        };
        measured_cell(Wait::Wfi, "ticks", stats)
    }

    #[test]
    fn the_figure_of_a_run_is_the_median_of_its_passes() {
        let mut cell = measured(2000);
        assert_eq!(Quantity::Median.figure_of(&cell, TIME), Some(80.0));
        cell.pass_p50 = vec![70, 400, 74, 78];
        assert_eq!(Quantity::Median.figure_of(&cell, TIME), Some(74.0));
    }

    #[test]
    fn a_percentile_takes_the_samples_that_support_it() {
        let known = |count| {
            let percentiles = [Quantity::Median, Quantity::P90, Quantity::P99];
            percentiles.map(|quantity| quantity.figure_of(&measured(count), TIME))
        };
        assert_eq!(known(19), [None, None, None]);
        assert_eq!(known(20), [Some(80.0), None, None]);
        assert_eq!(known(999), [Some(80.0), Some(90.0), None]);
        assert_eq!(known(1000), [Some(80.0), Some(90.0), Some(99.0)]);
        let mut skipped = measured(1000);
        skipped.stats = None;
        assert_eq!(Quantity::Median.figure_of(&skipped, TIME), None);
        // If values repeat exactly, every sample counts.
        let exact = How {
            exact: true,
            ..TIME
        };
        assert_eq!(Quantity::P99.figure_of(&measured(24), exact), Some(99.0));
    }

    #[test]
    fn the_path_follows_where_samples_are_divided() {
        let mut cell = measured(1000);
        let net = Stats {
            count: 1000,
            p50: 47,
            ..Stats::default()
        };
        cell.exits = Counts::from([("sgi".into(), 4000)]);
        cell.critical = Some(crate::Critical {
            samples: 1000,
            net,
            exits: Counts::from([("sgi".into(), 2000)]),
            ..Default::default()
        });
        let known = |apart| {
            let how = How { apart, ..TIME };
            let known =
                Quantity::ALL.map(|quantity| Some((quantity, quantity.figure_of(&cell, how)?)));
            known.into_iter().flatten().collect::<Vec<_>>()
        };
        let tail = [(Quantity::P90, 90.0), (Quantity::P99, 99.0)];
        let leads = [(Quantity::Median, 80.0), (Quantity::Path, 47.0)];
        let exits = |count| [(Quantity::Exits, count)];
        assert_eq!(known(true), [&leads[..], &tail, &exits(2.0)].concat());
        // Another run has no path, so whole samples are compared.
        let leads = [(Quantity::Median, 80.0)];
        assert_eq!(known(false), [&leads[..], &tail, &exits(4.0)].concat());
    }

    #[test]
    fn a_sample_whose_path_is_not_known_changes_neither_mean_nor_maximum() {
        let mut cell = measured(1000);
        let parties = Stats {
            count: 999,
            max: 99,
            mean: 80.0,
            ..Stats::default()
        };
        cell.critical = Some(crate::Critical {
            unclear: 1,
            parties,
            ..Default::default()
        });
        let stats = cell.stats.as_mut().unwrap();
        (stats.max, stats.mean) = (103, 80.02);
        let of = |apart| {
            let how = How { apart, exact: true };
            [Quantity::Mean, Quantity::Max].map(|quantity| quantity.figure_of(&cell, how))
        };
        assert_eq!(of(true), [Some(80.0), Some(99.0)]);
        assert_eq!(of(false), [Some(80.02), Some(103.0)]);
    }

    #[test]
    fn exits_are_those_of_a_wake_up() {
        let mut cell = measured(1000);
        cell.exits = Counts::from([("sgi".into(), 2000), ("wfi".into(), 1001)]);
        assert_eq!(Quantity::Exits.figure_of(&cell, TIME), Some(3.0));
        // More wake-ups were made and counted than there are samples.
        cell.made = 1001;
        cell.exits = Counts::from([("sgi".into(), 2002)]);
        assert_eq!(Quantity::Exits.figure_of(&cell, TIME), Some(2.0));
        cell.ipis = Counts::from([("sent".into(), 2002), ("elided".into(), 7)]);
        assert_eq!(Quantity::Ipis.figure_of(&cell, TIME), Some(2.0));
        cell.wakes = Counts::from([("timeout".into(), 1001)]);
        let timeouts =
            [true, false].map(|exact| Quantity::Timeouts.figure_of(&cell, How { exact, ..TIME }));
        assert_eq!(timeouts, [Some(1.0), None]);
    }
}
