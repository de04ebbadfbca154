// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells are compared, and what comes of it.

use std::collections::BTreeMap;

use significance::{holm, least_p, median, runs_needed, runs_to_see};

use crate::merge::Run;
use crate::{Cell, Results};

use super::figures::{Compared, Quantity, Verdict};

/// A cell that both sides measured, or neither.
#[derive(Debug)]
pub struct Pair<'r> {
    /// What it is.
    pub cell: &'r Cell,
    /// It in the runs of A that measured it.
    pub a: Vec<&'r Cell>,
    /// It in those of B.
    pub b: Vec<&'r Cell>,
    /// What could be compared; what leads first.
    pub figures: Vec<Compared>,
    /// The stage that changed most in the direction of the whole, and by how much.
    pub stage: Option<(String, f64)>,
}

impl Pair<'_> {
    /// What it is judged by: the path, or the median of its samples.
    pub fn total(&self) -> Option<&Compared> {
        self.figures.first().filter(|first| first.quantity.leads())
    }

    /// The figure of `quantity`.
    pub fn figure(&self, quantity: Quantity) -> Option<&Compared> {
        self.figures
            .iter()
            .find(|figure| figure.quantity == quantity)
    }

    /// What is to be said of that.
    pub fn verdict(&self) -> Verdict {
        match self.total() {
            Some(total) => total.verdict,
            None if self.a.is_empty() => Verdict::Unknown,
            None => Verdict::FewSamples,
        }
    }
}

/// A cell that A measured, and B did not in all of its runs.
#[derive(Debug)]
pub struct Lost<'r> {
    /// Which.
    pub cell: &'r Cell,
    /// Runs of B that have it.
    pub has: usize,
    /// Runs of B.
    pub of: usize,
    /// Why one skipped it, if one did.
    pub why: Option<&'r str>,
}

/// Everything that can be said of B against A.
#[derive(Debug)]
pub struct Comparison<'r> {
    /// Cells of both.
    pub pairs: Vec<Pair<'r>>,
    /// What A measured, and B did not, or not in each run.
    pub lost: Vec<Lost<'r>>,
    /// What B alone measured.
    pub added: Vec<&'r Cell>,
    /// Values repeat from run to run, so that each difference is one of the code: no test is needed.
    pub exact: bool,
    /// Probability that anything is called different if nothing is.
    pub level: f64,
    /// Tests at this level together: figures that are not the same in all runs.
    pub tests: usize,
}

/// The cells of a side, with what they are in each run.
type Cells<'r> = Vec<(Vec<String>, Vec<&'r Cell>)>;

impl<'r> Comparison<'r> {
    /// Compares cells with the same key. A cell that is several times in one run, as in a
    /// log of several boots, is one of several runs.
    pub fn new(a: &'r [Run], b: &'r [Run], level: f64) -> Self {
        let (a_cells, mut b_cells) = (cells(a), cells(b));
        let of = b_cells.iter().map(|(_, cells)| cells.len()).max();
        let mut comparison = Self {
            pairs: Vec::new(),
            lost: Vec::new(),
            added: Vec::new(),
            exact: a.iter().chain(b).all(|run| repeats(&run.results)),
            level,
            tests: 0,
        };
        for (key, a) in a_cells {
            let at = b_cells.iter().position(|(other, _)| *other == key);
            let b = at.map(|at| b_cells.remove(at).1).unwrap_or_default();
            comparison.add(&a, &b, of.unwrap_or(0));
        }
        let left = b_cells
            .iter()
            .filter_map(|(_, cells)| measured(cells).first().copied());
        comparison.added.extend(left);
        comparison.judge();
        comparison
    }

    /// Takes a cell of A, and of B as often as it is there, of as many runs.
    fn add(&mut self, a: &[&'r Cell], b: &[&'r Cell], of: usize) {
        let (in_a, in_b) = (measured(a), measured(b));
        let cell = in_a.first().or(a.first()).copied();
        let Some(cell) = cell else { return };
        if in_a.is_empty() && !in_b.is_empty() {
            self.added.push(in_b[0]);
            return;
        }
        if !in_a.is_empty() && (in_b.is_empty() || in_b.len() < of) {
            self.lost.push(Lost {
                cell,
                has: in_b.len(),
                of,
                why: b.iter().find_map(|cell| cell.skipped.as_deref()),
            });
        }
        if in_a.is_empty() == in_b.is_empty() {
            self.pairs.push(pair(cell, in_a, in_b));
        }
    }

    /// Judges every figure, knowing how many there are.
    fn judge(&mut self) {
        let figures = self.pairs.iter_mut().flat_map(|pair| &mut pair.figures);
        if self.exact {
            figures.for_each(Compared::judge_exactly);
        } else {
            let mut figures: Vec<&mut Compared> = figures.collect();
            let alone = |figure: &&mut Compared| (!figure.is_constant()).then(|| figure.alone());
            let p_values: Vec<Option<f64>> = figures.iter().map(alone).collect();
            let tested: Vec<f64> = p_values.iter().flatten().copied().collect();
            self.tests = tested.len();
            let each = self.level / self.tests.max(1) as f64;
            let mut adjusted = holm(&tested).into_iter();
            for (figure, alone) in figures.iter_mut().zip(p_values) {
                let (a, b) = (figure.a.runs(), figure.b.runs());
                let p_value = alone.and_then(|_| adjusted.next()).unwrap_or(1.0);
                figure.judge(
                    p_value,
                    self.level,
                    alone.is_none() || least_p(a, b) <= each,
                );
                let none = figure.verdict == Verdict::NoDifference;
                figure.saw_none_at = none.then_some(each);
            }
        }
        self.pairs.iter_mut().for_each(find_stage);
    }

    /// How many pairs have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let pairs = self.pairs.iter();
        pairs.filter(|pair| pair.verdict() == verdict).count()
    }

    /// Every figure, with its cell.
    pub fn figures(&self) -> impl Iterator<Item = (&Pair<'r>, &Compared)> {
        let pairs = self.pairs.iter();
        pairs.flat_map(|pair| pair.figures.iter().map(move |figure| (pair, figure)))
    }

    /// Runs that each side needs before there can be verdicts: 1 where values repeat.
    pub fn runs_needed(&self) -> usize {
        match self.exact {
            true => 1,
            false => runs_needed(self.tests, self.level),
        }
    }

    /// For each pair, how many runs of each side would show a median that is `percent` per cent
    /// away; `None` where that is not known, or are more than can be asked for.
    pub fn runs_to_see(&self, percent: f64) -> Vec<Option<usize>> {
        let least = self.runs_needed();
        let each = self.level / self.tests.max(1) as f64;
        let runs = |pair: &Pair<'_>| {
            let residuals = pair.total().filter(|_| !self.exact)?.residuals();
            runs_to_see(&residuals, percent / 100.0, each).map(|runs| runs.max(least))
        };
        self.pairs.iter().map(runs).collect()
    }
}

/// Whether what these count is the same in every run: instructions of an emulator that
/// counts them, and whatever a simulator makes of a model.
fn repeats(results: &Results) -> bool {
    // Linux draws at random, from another seed in each repetition.
    if results
        .cells
        .iter()
        .any(|cell| cell.what.workload.is_linux())
    {
        return false;
    }
    let simulated = results.machine.emulator.as_ref();
    results.unit == "insns" || simulated.is_some_and(|emulator| emulator.name == "gem5")
}

/// The cells of all runs, by what they are, in the order in which they first come.
fn cells(runs: &[Run]) -> Cells<'_> {
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

fn measured<'r>(cells: &[&'r Cell]) -> Vec<&'r Cell> {
    let cells = cells.iter().copied();
    cells.filter(|cell| cell.stats.is_some()).collect()
}

fn pair<'r>(cell: &'r Cell, a: Vec<&'r Cell>, b: Vec<&'r Cell>) -> Pair<'r> {
    let figures = Quantity::ALL.iter();
    let figures = figures.filter_map(|&quantity| Compared::between(quantity, &a, &b));
    Pair {
        cell,
        figures: figures.collect(),
        a,
        b,
        stage: None,
    }
}

/// Finds the stage that changed most in the direction in which the median did.
fn find_stage(pair: &mut Pair<'_>) {
    let Some(total) = pair.total().filter(|total| total.changed()) else {
        return;
    };
    let sign = total.by().signum();
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
