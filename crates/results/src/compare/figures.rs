// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared of a cell, and what the runs say of it.

use significance::{FEWEST, detectable, median, residuals};

use crate::{Bounds, Cell, Stats};

/// What is compared of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The median of the path without bookkeeping, where samples are taken apart.
    Path,
    /// There, the median of the samples: the work of all CPUs.
    Work,
    /// Elsewhere, the median of the samples: of a run, the median of those of its passes.
    Median,
    /// The 90th percentile of the samples.
    P90,
    /// The 99th percentile of the samples.
    P99,
    /// Exits to EL2 per wake-up, of all causes, to a hundredth.
    Exits,
}

impl Quantity {
    /// Every one, in the order in which they are told: what leads comes first.
    pub const ALL: [Self; 6] = [
        Self::Path,
        Self::Work,
        Self::Median,
        Self::P90,
        Self::P99,
        Self::Exits,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Work => "work of all CPUs",
            Self::Median => "median",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Exits => "exits",
        }
    }

    /// Whether it is what a cell is judged by, if it is there.
    pub const fn leads(self) -> bool {
        matches!(self, Self::Path | Self::Median)
    }

    /// Statistics of what it is a figure of; `None` of what are no samples.
    fn samples(self, cell: &Cell) -> Option<Stats> {
        match self {
            Self::Path => Some(cell.critical.as_ref()?.net),
            Self::Work | Self::Median | Self::P90 | Self::P99 => cell.stats,
            Self::Exits => None,
        }
    }

    /// The figure of one run; `None` if it has none, or too few samples for it.
    /// `apart`: the samples of all runs are taken apart.
    pub fn of(self, cell: &Cell, apart: bool) -> Option<f64> {
        let stats = cell.stats?;
        let percentile = |per_mille, value: u64| stats.supports(per_mille).then_some(value as f64);
        match (self, apart) {
            (Self::Path, true) => {
                let net = self.samples(cell)?;
                net.supports(500).then_some(net.p50 as f64)
            }
            (Self::Work, true) | (Self::Median, false) => {
                let passes: Vec<f64> = cell.pass_p50.iter().map(|&pass| pass as f64).collect();
                percentile(500, stats.p50).map(|p50| median(&passes).unwrap_or(p50))
            }
            (Self::Path | Self::Work, false) | (Self::Median, true) => None,
            (Self::P90, _) => percentile(900, stats.p90),
            (Self::P99, _) => percentile(990, stats.p99),
            (Self::Exits, _) => {
                let exits = match apart {
                    true => cell.exits_of_samples(),
                    false => &cell.exits,
                };
                let each = |name: &String| match apart {
                    true => cell.exits_per_sample(name),
                    false => cell.per_sample(exits, name),
                };
                let sum: f64 = exits.keys().map(each).sum();
                (!exits.is_empty()).then(|| (sum * 100.0).round() / 100.0)
            }
        }
    }
}

/// The figures of a side, one of each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    of_runs: Vec<f64>,
    /// Of the samples that they are figures of.
    pub bounds: Bounds,
}

impl Figures {
    /// Those of `cells`, one of each run; `None` if a run has none.
    fn of(quantity: Quantity, cells: &[&Cell], apart: bool) -> Option<Self> {
        let figures = cells.iter().map(|cell| quantity.of(cell, apart));
        let figures: Option<Vec<f64>> = figures.collect();
        let of_runs = figures.filter(|figures| !figures.is_empty())?;
        let samples = cells.iter().filter_map(|cell| quantity.samples(cell));
        let bounds = Bounds::of(samples);
        Some(Self { of_runs, bounds })
    }

    /// Their median.
    pub fn median(&self) -> f64 {
        median(&self.of_runs).unwrap_or(0.0)
    }

    /// The lowest.
    pub fn low(&self) -> f64 {
        self.of_runs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The highest.
    pub fn high(&self) -> f64 {
        self.of_runs
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// How many runs.
    pub fn runs(&self) -> usize {
        self.of_runs.len()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.low() <= other.high() && other.low() <= self.high()
    }
}

/// What can be said of B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is less.
    Better,
    /// It is more.
    Worse,
    /// None is seen.
    NoDifference,
    /// There are too few runs to tell.
    TooFew,
    /// A run has too few samples for a median.
    FewSamples,
    /// It was measured on neither side.
    Unknown,
}

/// One quantity of a cell, on both sides.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Which.
    pub quantity: Quantity,
    /// In A.
    pub a: Figures,
    /// In B.
    pub b: Figures,
    /// What the runs say.
    pub verdict: Verdict,
    /// Where it was tested: the p-value, with what the number of tests adds.
    pub p_value: Option<f64>,
    /// The level of this test alone, where it was one and saw no difference.
    pub(super) saw_none_at: Option<f64>,
}

impl Compared {
    /// The quantity in `a` and `b`, not judged yet; `None` if a side does not have it.
    pub(super) fn between(quantity: Quantity, a: &[&Cell], b: &[&Cell]) -> Option<Self> {
        let apart = a.iter().chain(b).all(|cell| cell.critical.is_some());
        Some(Self {
            quantity,
            a: Figures::of(quantity, a, apart)?,
            b: Figures::of(quantity, b, apart)?,
            verdict: Verdict::Unknown,
            p_value: None,
            saw_none_at: None,
        })
    }

    /// How much more B has.
    pub fn by(&self) -> f64 {
        self.b.median() - self.a.median()
    }

    /// The same in per cent of A; infinite where A has none.
    pub fn percent(&self) -> f64 {
        match self.by() {
            0.0 => 0.0,
            by => by * 100.0 / self.a.median(),
        }
    }

    /// Whether a difference was found.
    pub fn changed(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }

    /// Which of the two it is if there is a difference.
    fn direction(&self) -> Verdict {
        if self.by() > 0.0 {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    }

    /// Judges what repeats exactly: sides that share no value differ.
    pub(super) fn judge_exactly(&mut self) {
        self.verdict = match self.a.overlaps(&self.b) {
            true => Verdict::NoDifference,
            false => self.direction(),
        };
    }

    /// Whether all runs of both sides have one value. No order of them tells anything then:
    /// the test would have a p-value of 1 whatever side the runs are on, and counts for nothing.
    pub(super) fn is_constant(&self) -> bool {
        let first = self.a.low();
        let same = |side: &Figures| side.low() == first && side.high() == first;
        same(&self.a) && same(&self.b)
    }

    /// The probability that runs of one population fall as far apart.
    pub(super) fn alone(&self) -> f64 {
        significance::p_value(&self.a.of_runs, &self.b.of_runs)
    }

    /// Judges by the p-value that the family leaves of its own; `can` tells whether these
    /// runs could have shown anything.
    pub(super) fn judge(&mut self, p_value: f64, level: f64, can: bool) {
        let enough = self.a.runs().min(self.b.runs()) >= FEWEST;
        self.p_value = enough.then_some(p_value);
        self.verdict = match (enough, p_value <= level && self.by() != 0.0) {
            (true, true) => self.direction(),
            (true, false) if can => Verdict::NoDifference,
            _ => Verdict::TooFew,
        };
    }

    /// Where no difference was seen: the one that would have been, in per cent of A. It is simulated each time it is asked for.
    pub fn sees(&self) -> Option<f64> {
        let level = self.saw_none_at?;
        let (a, b) = (self.a.runs(), self.b.runs());
        let least = detectable(&self.residuals(), a, b, level);
        least.map(|least| least * 100.0)
    }

    /// How the runs of a side are spread, in parts of A's median; empty if that is not known.
    pub(super) fn residuals(&self) -> Vec<f64> {
        let of = self.a.median();
        let mut residuals = residuals(&[&self.a.of_runs, &self.b.of_runs]);
        residuals.iter_mut().for_each(|residual| *residual /= of);
        residuals.retain(|residual| residual.is_finite());
        residuals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::cell;
    use crate::{Counts, Stats};
    use plan::Wait;

    fn measured(count: u64) -> Cell {
        let stats = Stats {
            count,
            p50: 80,
            p90: 90,
            p99: 99,
            ..Stats::default()
        };
        cell(Wait::Wfi, "ticks", stats)
    }

    #[test]
    fn the_figure_of_a_run_is_the_median_of_its_passes() {
        let mut cell = measured(2000);
        assert_eq!(Quantity::Median.of(&cell, false), Some(80.0));
        cell.pass_p50 = vec![70, 400, 74, 78];
        assert_eq!(Quantity::Median.of(&cell, false), Some(76.0));
    }

    #[test]
    fn a_percentile_takes_the_samples_that_support_it() {
        let known = |count| {
            let percentiles = [Quantity::Median, Quantity::P90, Quantity::P99];
            percentiles.map(|quantity| quantity.of(&measured(count), false))
        };
        assert_eq!(known(19), [None, None, None]);
        assert_eq!(known(20), [Some(80.0), None, None]);
        assert_eq!(known(999), [Some(80.0), Some(90.0), None]);
        assert_eq!(known(1000), [Some(80.0), Some(90.0), Some(99.0)]);
        let mut skipped = measured(1000);
        skipped.stats = None;
        assert_eq!(Quantity::Median.of(&skipped, false), None);
    }

    #[test]
    fn the_path_leads_where_samples_are_taken_apart() {
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
        let known = |apart| Quantity::ALL.map(|quantity| quantity.of(&cell, apart));
        let tail = [Some(90.0), Some(99.0)];
        let with = [Some(47.0), Some(80.0), None, tail[0], tail[1], Some(2.0)];
        assert_eq!(known(true), with);
        // Another run has no path: the samples are held against its samples.
        let without = [None, None, Some(80.0), tail[0], tail[1], Some(4.0)];
        assert_eq!(known(false), without);
    }

    #[test]
    fn exits_are_those_of_a_wake_up() {
        let mut cell = measured(1000);
        cell.exits = Counts::from([("sgi".into(), 2000), ("wfi".into(), 1001)]);
        assert_eq!(Quantity::Exits.of(&cell, false), Some(3.0));
        // Made like samples, and counted, is more than they are.
        cell.made = 1001;
        cell.exits = Counts::from([("sgi".into(), 2002)]);
        assert_eq!(Quantity::Exits.of(&cell, false), Some(2.0));
    }

    #[test]
    fn no_difference_of_nothing_is_none_and_anything_more_is_without_end() {
        let one = |figure| Figures {
            of_runs: vec![figure],
            bounds: Bounds::NONE,
        };
        let compared = |a: f64, b: f64| Compared {
            quantity: Quantity::Exits,
            a: one(a),
            b: one(b),
            verdict: Verdict::Unknown,
            p_value: None,
            saw_none_at: None,
        };
        assert_eq!(compared(0.0, 0.0).percent(), 0.0);
        assert_eq!(compared(0.0, 2.0).percent(), f64::INFINITY);
        assert_eq!(compared(2.0, 4.0).percent(), 100.0);
    }
}
