// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the cells to compare, and judges them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use significance::{holm_adjusted, least_p_value, median, runs_needed, runs_to_see};

use crate::Cell;
use crate::merge::Run;

use super::figures::{Compared, Verdict};
use super::quantity::Quantity;
use super::setting::Differs;

/// A cell that both sides measured, or that neither side measured.
#[derive(Debug)]
pub struct Pair<'r> {
    /// The cell in one of the runs.
    pub cell: &'r Cell,
    /// The cell in the runs of A that measured it.
    pub a: Vec<&'r Cell>,
    /// The cell in the runs of B that measured it.
    pub b: Vec<&'r Cell>,
    /// The figures that can be compared, with the most important one first.
    pub figures: Vec<Compared>,
    /// The stage that changed most in the same direction as the whole sample, and the change of this stage.
    pub stage: Option<(String, f64)>,
}

impl Pair<'_> {
    /// Returns the figure that decides the verdict: the median of the samples.
    pub fn deciding_figure(&self) -> Option<&Compared> {
        self.figures
            .first()
            .filter(|first| first.quantity.decides_verdict())
    }

    /// Returns the figure of `quantity`.
    pub fn figure(&self, quantity: Quantity) -> Option<&Compared> {
        self.figures
            .iter()
            .find(|figure| figure.quantity == quantity)
    }

    /// Returns the properties that the machine does not model, and that the cell depends on in A or in B, but not in
    /// both. If there are any, the verdict compares different things.
    pub fn one_sided_properties(&self) -> BTreeSet<&str> {
        fn missing_on<'r>(cells: &[&'r Cell]) -> BTreeSet<&'r str> {
            let all = cells.iter().flat_map(|cell| &cell.not_modelled);
            all.map(String::as_str).collect()
        }
        let sides = [missing_on(&self.a), missing_on(&self.b)];
        sides[0].symmetric_difference(&sides[1]).copied().collect()
    }

    /// Returns the verdict on the median of the samples.
    pub fn verdict(&self) -> Verdict {
        match self.deciding_figure() {
            Some(total) => total.verdict,
            None if self.a.is_empty() => Verdict::Unknown,
            None => Verdict::FewSamples,
        }
    }
}

/// A cell of A that B has less often, or more often, than once per run.
#[derive(Debug)]
pub struct Lost<'r> {
    /// The cell.
    pub cell: &'r Cell,
    /// How often the runs of B have the cell.
    pub has: usize,
    /// Number of B's runs.
    pub of: usize,
    /// The reason why a run of B skipped the cell, if one did.
    pub why: Option<&'r str>,
}

/// The complete comparison of B with A.
#[derive(Debug)]
pub struct Comparison<'r> {
    /// Cells of both sides.
    pub pairs: Vec<Pair<'r>>,
    /// Cells that A measured, but that at least one run of B did not.
    pub lost: Vec<Lost<'r>>,
    /// Cells that B has more than once per run.
    pub again: Vec<Lost<'r>>,
    /// Cells that only B measured.
    pub added: Vec<&'r Cell>,
    /// Whether values repeat exactly from run to run. Any difference is then due to the code, and no test is needed.
    pub exact: bool,
    /// The probability that any figure is called different although nothing differs.
    pub level: f64,
    /// Number of tests that share this level. Figures that are equal in all runs are not tested.
    pub tests: usize,
}

/// The cells of a side by key, each with its measurements in all runs.
type Cells<'r> = Vec<(Vec<String>, Vec<&'r Cell>)>;

impl<'r> Comparison<'r> {
    /// Compares cells with the same key. A cell that occurs several times in one run, as in a log of several boots,
    /// counts as if each occurrence were in a run of its own.
    pub fn new(a: &'r [Run], b: &'r [Run], level: f64) -> Self {
        let (a_cells, mut b_cells) = (cells_by_key(a), cells_by_key(b));
        let of = times_expected(b, &b_cells);
        let mut comparison = Self {
            pairs: Vec::new(),
            lost: Vec::new(),
            again: Vec::new(),
            added: Vec::new(),
            exact: a
                .iter()
                .chain(b)
                .all(|run| run.results.has_repeatable_counts()),
            level,
            tests: 0,
        };
        for (key, a) in a_cells {
            let at = b_cells.iter().position(|(other, _)| *other == key);
            let b = at.map(|at| b_cells.remove(at).1).unwrap_or_default();
            comparison.add_cell(&a, &b, of);
        }
        let left = b_cells
            .iter()
            .filter_map(|(_, cells)| measured_cells(cells).first().copied());
        comparison.added.extend(left);
        comparison.judge_figures();
        comparison
    }

    /// Adds a cell with its measurements `a` and `b`. `of` is the number of measurements that B should have.
    fn add_cell(&mut self, a: &[&'r Cell], b: &[&'r Cell], of: usize) {
        let (in_a, in_b) = (measured_cells(a), measured_cells(b));
        let cell = in_a.first().or(a.first()).copied();
        let Some(cell) = cell else { return };
        if in_a.is_empty() && !in_b.is_empty() {
            self.added.push(in_b[0]);
            return;
        }
        let lost = Lost {
            cell,
            has: in_b.len(),
            of,
            why: b.iter().find_map(|cell| cell.skipped.as_deref()),
        };
        match in_b.len() {
            _ if in_a.is_empty() => {}
            0 => self.lost.push(lost),
            has if has < of => self.lost.push(lost),
            has if has > of => self.again.push(lost),
            _ => {}
        }
        if in_a.is_empty() == in_b.is_empty() {
            self.pairs.push(new_pair(cell, in_a, in_b, self.exact));
        }
    }

    /// Judges every figure. Each verdict depends on the number of figures that are tested.
    fn judge_figures(&mut self) {
        let figures = self.pairs.iter_mut().flat_map(|pair| &mut pair.figures);
        if self.exact {
            figures.for_each(Compared::judge_exactly);
        } else {
            let mut figures: Vec<&mut Compared> = figures.collect();
            let alone =
                |figure: &&mut Compared| (!figure.is_constant()).then(|| figure.own_p_value());
            let p_values: Vec<Option<f64>> = figures.iter().map(alone).collect();
            let tested: Vec<f64> = p_values.iter().flatten().copied().collect();
            self.tests = tested.len();
            let each = self.level / self.tests.max(1) as f64;
            let mut adjusted = holm_adjusted(&tested).into_iter();
            for (figure, alone) in figures.iter_mut().zip(p_values) {
                let (a, b) = (figure.a.run_count(), figure.b.run_count());
                let p_value = alone.and_then(|_| adjusted.next()).unwrap_or(1.0);
                figure.judge(
                    p_value,
                    self.level,
                    alone.is_none() || least_p_value(a, b) <= each,
                );
                let none = figure.verdict == Verdict::NoDifference;
                figure.saw_none_at = none.then_some(each);
            }
        }
        self.pairs.iter_mut().for_each(find_stage);
    }

    /// Returns a difference if the path of some cell is known on one side only, so that the comparison can't use the
    /// path.
    pub fn path_difference(&self) -> Option<Differs> {
        let sides = self
            .pairs
            .iter()
            .map(|pair| (path_words(&pair.a), path_words(&pair.b)));
        let unlike: Vec<(Words, Words)> = sides.filter(|(a, b)| a.union(b).count() > 1).collect();
        let cells = if unlike.len() == 1 { "cell" } else { "cells" };
        (!unlike.is_empty()).then(|| Differs {
            aspect: "path",
            what: format!("path of {} {cells}", unlike.len()),
            a: join_words(unlike.iter().map(|(a, _)| a)),
            b: join_words(unlike.iter().map(|(_, b)| b)),
        })
    }

    /// Returns the number of pairs whose verdict is `verdict`.
    pub fn count_verdict(&self, verdict: Verdict) -> usize {
        let pairs = self.pairs.iter();
        pairs.filter(|pair| pair.verdict() == verdict).count()
    }

    /// Returns every figure, with its cell.
    pub fn cells_and_figures(&self) -> impl Iterator<Item = (&Pair<'r>, &Compared)> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|pair| pair.figures.iter().map(move |figure| (pair, figure)))
    }

    /// Returns the number of runs that each side needs for a verdict. One run is enough if values repeat exactly.
    pub fn runs_needed(&self) -> usize {
        match self.exact {
            true => 1,
            false => runs_needed(self.tests, self.level),
        }
    }

    /// Returns, for each pair, how many runs of each side are needed to detect a difference of `percent` per cent
    /// between medians. `None` if the number is unknown, or too large to request.
    pub fn runs_to_see(&self, percent: f64) -> Vec<Option<usize>> {
        let least = self.runs_needed();
        let each = self.level / self.tests.max(1) as f64;
        let runs = |pair: &Pair<'_>| {
            let residuals = pair
                .deciding_figure()
                .filter(|_| !self.exact)?
                .relative_residuals();
            runs_to_see(&residuals, percent / 100.0, each).map(|runs| runs.max(least))
        };
        self.pairs.iter().map(runs).collect()
    }
}

type Words = BTreeSet<&'static str>;

/// Describes whether the paths of `cells` are known.
fn path_words(cells: &[&Cell]) -> Words {
    let words = cells.iter().map(|cell| match cell.critical {
        Some(_) => "known",
        None => "not known",
    });
    words.collect()
}

fn join_words<'w>(all: impl Iterator<Item = &'w Words>) -> String {
    let words: Words = all.flatten().copied().collect();
    words.into_iter().collect::<Vec<_>>().join(" or ")
}

/// Returns how often each of `cells` should occur in `runs`. This is the larger of two numbers: the largest number of
/// runs that share a cell, and the usual number of a cell's occurrences, which is larger in a log of several boots.
fn times_expected(runs: &[Run], cells: &Cells<'_>) -> usize {
    let mut in_runs: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for run in runs {
        let keys: BTreeSet<_> = run.results.cells.iter().map(Cell::key).collect();
        keys.into_iter()
            .for_each(|key| *in_runs.entry(key).or_default() += 1);
    }
    let mut often: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, cells) in cells {
        *often.entry(cells.len()).or_default() += 1;
    }
    let usual = often
        .into_iter()
        .max_by_key(|&(times, cells)| (cells, Reverse(times)));
    let most = in_runs.into_values().max();
    most.max(usual.map(|(times, _)| times)).unwrap_or(0)
}

/// Returns the cells of all runs by key, in the order of their first appearance.
fn cells_by_key(runs: &[Run]) -> Cells<'_> {
    let mut cells: Cells<'_> = Vec::new();
    let mut places = BTreeMap::new();
    for cell in runs.iter().flat_map(|run| &run.results.cells) {
        let key = cell.key();
        let place = *places.entry(key.clone()).or_insert(cells.len());
        match cells.get_mut(place) {
            Some((_, known)) => known.push(cell),
            None => cells.push((key, vec![cell])),
        }
    }
    cells
}

fn measured_cells<'r>(cells: &[&'r Cell]) -> Vec<&'r Cell> {
    let cells = cells.iter().copied();
    cells.filter(|cell| cell.stats.is_some()).collect()
}

fn new_pair<'r>(cell: &'r Cell, a: Vec<&'r Cell>, b: Vec<&'r Cell>, exact: bool) -> Pair<'r> {
    let figures = Quantity::ALL.iter();
    let figures = figures.filter_map(|&quantity| Compared::compare_cells(quantity, &a, &b, exact));
    Pair {
        cell,
        figures: figures.collect(),
        a,
        b,
        stage: None,
    }
}

/// Finds the stage that changed most in the direction of the median's change.
fn find_stage(pair: &mut Pair<'_>) {
    let Some(total) = pair.deciding_figure().filter(|total| total.has_changed()) else {
        return;
    };
    let sign = total.difference().signum();
    let of = |cells: &[&Cell], name: &str| {
        let stages = cells.iter().flat_map(|cell| cell.stages());
        let medians = stages.filter(|stage| stage.name == name);
        let medians: Vec<f64> = medians.map(|stage| stage.stats.p50 as f64).collect();
        median(&medians)
    };
    let names = pair.cell.stages().map(|stage| &stage.name);
    let by = names.filter_map(|name| {
        let by = of(&pair.b, name)? - of(&pair.a, name)?;
        (by * sign > 0.0).then(|| (name.clone(), by))
    });
    pair.stage = by.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
}

#[cfg(test)]
mod tests;
