// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a cell, and the verdict on them.

use significance::{FEWEST, detectable_shift, median, residuals};

use super::quantity::{How, Quantity, clear_stats};
use crate::{Bounds, Cell};

/// The figures of one side of a comparison, one for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    of_runs: Vec<f64>,
    /// Bounds of each run's samples, if the run's figure was rounded.
    bounds: Vec<Option<Bounds>>,
}

impl Figures {
    /// Collects the figure of `quantity` for each run, from `cells`. `None` if any run has no such figure.
    fn collect_figures(quantity: Quantity, cells: &[&Cell], how: How) -> Option<Self> {
        let figures = cells.iter().map(|cell| quantity.figure_of(cell, how));
        let figures: Option<Vec<f64>> = figures.collect();
        let of_runs = figures.filter(|figures| !figures.is_empty())?;
        let bounds = cells.iter().map(|cell| quantity.bounds(cell)).collect();
        Some(Self { of_runs, bounds })
    }

    /// Collects the medians of `cells`, one for each run, even if a run has few samples. `None` if a run has no
    /// samples.
    pub fn collect_medians(cells: &[&Cell]) -> Option<Self> {
        let stats = cells.iter().filter_map(|cell| cell.stats);
        let (of_runs, bounds): (Vec<f64>, Vec<_>) = stats
            .map(|stats| (stats.p50 as f64, Some(stats.bounds())))
            .unzip();
        (!of_runs.is_empty()).then_some(Self { of_runs, bounds })
    }

    /// Returns the bounds of the samples in the run whose figure is `figure`. `None` if the figure was not rounded.
    pub fn bounds(&self, figure: f64) -> Option<Bounds> {
        let of = self.of_runs.iter().position(|&of| of == figure)?;
        self.bounds[of]
    }

    /// Returns the median of the figures.
    pub fn median(&self) -> f64 {
        median(&self.of_runs).unwrap_or(0.0)
    }

    /// Returns the median of the figures as a whole number. If the median is a rounded figure, also returns the bounds
    /// of the samples of the run that it comes from.
    pub fn rounded_median(&self) -> (u64, Option<Bounds>) {
        let median = self.median();
        (median as u64, self.bounds(median))
    }

    /// Returns the lowest figure.
    pub fn lowest(&self) -> f64 {
        self.of_runs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the highest figure.
    pub fn highest(&self) -> f64 {
        self.of_runs
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the number of runs.
    pub fn run_count(&self) -> usize {
        self.of_runs.len()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.lowest() <= other.highest() && other.lowest() <= self.highest()
    }
}

/// The verdict on B compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// B is lower than A.
    Better,
    /// B is higher than A.
    Worse,
    /// No significant difference was found.
    NoDifference,
    /// There are too few runs for a verdict.
    TooFew,
    /// A run has too few samples for a median.
    FewSamples,
    /// Neither side has measured the quantity.
    Unknown,
}

/// One quantity of a cell, in A and in B.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The compared quantity.
    pub quantity: Quantity,
    /// Its figures in A.
    pub a: Figures,
    /// Its figures in B.
    pub b: Figures,
    /// The verdict on the difference.
    pub verdict: Verdict,
    /// The p-value, adjusted for the number of tests, if the quantity was tested.
    pub p_value: Option<f64>,
    /// The significance level of this test alone, if the test was made and detected no difference.
    pub(super) saw_none_at: Option<f64>,
}

impl Compared {
    /// Compares `quantity` in the cells `a` and `b`, still without a verdict. `None` if a side lacks the quantity.
    pub(super) fn compare_cells(
        quantity: Quantity,
        a: &[&Cell],
        b: &[&Cell],
        exact: bool,
    ) -> Option<Self> {
        let apart = a.iter().chain(b).all(|cell| cell.critical.is_some());
        let how = How { apart, exact };
        // The maximum tends to grow with the number of samples, so both sides need the same number.
        let counts = |cells: &[&Cell]| -> Vec<u64> {
            let mut counts: Vec<u64> = cells
                .iter()
                .map(|cell| clear_stats(cell, how).map_or(0, |stats| stats.count))
                .collect();
            counts.sort_unstable();
            counts.dedup();
            counts
        };
        if quantity == Quantity::Max && counts(a) != counts(b) {
            return None;
        }
        Some(Self {
            quantity,
            a: Figures::collect_figures(quantity, a, how)?,
            b: Figures::collect_figures(quantity, b, how)?,
            verdict: Verdict::Unknown,
            p_value: None,
            saw_none_at: None,
        })
    }

    /// Returns by how much B's figure exceeds A's figure.
    pub fn difference(&self) -> f64 {
        self.b.median() - self.a.median()
    }

    /// Returns by how much B's figure exceeds A's figure, in per cent of A's; infinity if A's figure is 0.
    pub fn percent_difference(&self) -> f64 {
        match self.difference() {
            0.0 => 0.0,
            by => by * 100.0 / self.a.median(),
        }
    }

    /// Whether a difference was found.
    pub fn has_changed(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }

    /// Returns the verdict that applies if there is a difference.
    fn changed_direction(&self) -> Verdict {
        if self.difference() > 0.0 {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    }

    /// Judges values that repeat exactly. The sides differ if their ranges do not overlap.
    pub(super) fn judge_exactly(&mut self) {
        self.verdict = match self.a.overlaps(&self.b) {
            true => Verdict::NoDifference,
            false => self.changed_direction(),
        };
    }

    /// Whether all runs of A and B have the same value. Any division of the runs into two sides then has the p-value 1,
    /// so the figure does not count as a test.
    pub(super) fn is_constant(&self) -> bool {
        let first = self.a.lowest();
        let same = |side: &Figures| side.lowest() == first && side.highest() == first;
        same(&self.a) && same(&self.b)
    }

    /// Returns the p-value of this test alone: the probability of at least this difference within one population.
    pub(super) fn own_p_value(&self) -> f64 {
        significance::p_value(&self.a.of_runs, &self.b.of_runs)
    }

    /// Judges by the p-value, which is adjusted for the whole family of tests. `can` tells whether this number of runs
    /// could have shown a difference at all.
    pub(super) fn judge(&mut self, p_value: f64, level: f64, can: bool) {
        let enough = self.a.run_count().min(self.b.run_count()) >= FEWEST;
        self.p_value = enough.then_some(p_value);
        self.verdict = match (enough, p_value <= level && self.difference() != 0.0) {
            (true, true) => self.changed_direction(),
            (true, false) if can => Verdict::NoDifference,
            _ => Verdict::TooFew,
        };
    }

    /// If no difference was detected, returns the smallest one that would have been detected, in per cent of A.
    /// Each call repeats the simulation.
    pub fn least_detectable_percent(&self) -> Option<f64> {
        let level = self.saw_none_at?;
        let (a, b) = (self.a.run_count(), self.b.run_count());
        let least = detectable_shift(&self.relative_residuals(), a, b, level);
        least.map(|least| least * 100.0)
    }

    /// Returns how far each run is from its side's median, as a share of A's median. Empty if unknown.
    pub(super) fn relative_residuals(&self) -> Vec<f64> {
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

    #[test]
    fn no_difference_of_nothing_is_none_and_anything_more_is_without_end() {
        let one = |figure| Figures {
            of_runs: vec![figure],
            bounds: vec![None],
        };
        let compared = |a: f64, b: f64| Compared {
            quantity: Quantity::Exits,
            a: one(a),
            b: one(b),
            verdict: Verdict::Unknown,
            p_value: None,
            saw_none_at: None,
        };
        assert_eq!(compared(0.0, 0.0).percent_difference(), 0.0);
        assert_eq!(compared(0.0, 2.0).percent_difference(), f64::INFINITY);
        assert_eq!(compared(2.0, 4.0).percent_difference(), 100.0);
    }
}
