// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells are compared, and what comes of it.

use crate::{Cell, Results};

use super::median::{Histogram, Median};

/// What a cell of B is against the same cell of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It costs less.
    Better,
    /// It costs more.
    Worse,
    /// The samples do not tell.
    NoDifference,
    /// It was not measured, or its histogram is missing.
    Unknown,
}

/// A difference of medians.
#[derive(Clone, Debug)]
pub struct Difference {
    /// In A.
    pub a: Median,
    /// In B.
    pub b: Median,
}

impl Difference {
    /// That of two histograms, unless one is empty.
    fn between(a: &Histogram, b: &Histogram) -> Option<Self> {
        let (a, b) = (Median::of(a)?, Median::of(b)?);
        Some(Self { a, b })
    }

    /// What the intervals say.
    pub fn verdict(&self) -> Verdict {
        if self.a.value == self.b.value || !self.a.is_apart_from(&self.b) {
            Verdict::NoDifference
        } else if self.b.value < self.a.value {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    /// How much more B has.
    pub fn by(&self) -> i64 {
        self.b.value as i64 - self.a.value as i64
    }

    /// The same in per cent of A.
    pub fn percent(&self) -> f64 {
        self.by() as f64 * 100.0 / self.a.value.max(1) as f64
    }
}

/// A cell that both have.
#[derive(Debug)]
pub struct Pair<'r> {
    /// The one of A.
    pub a: &'r Cell,
    /// The one of B.
    pub b: &'r Cell,
    /// From end to end, if both measured it.
    pub total: Option<Difference>,
    /// The stage that changed most, in the direction of the whole.
    pub stage: Option<(String, Difference)>,
}

impl Pair<'_> {
    /// What is to be said of it.
    pub fn verdict(&self) -> Verdict {
        self.total
            .as_ref()
            .map_or(Verdict::Unknown, Difference::verdict)
    }
}

/// Everything that can be said of B against A.
#[derive(Debug)]
pub struct Comparison<'r> {
    /// Cells of both.
    pub pairs: Vec<Pair<'r>>,
    /// Cells that only A has.
    pub only_a: Vec<&'r Cell>,
    /// Cells that only B has.
    pub only_b: Vec<&'r Cell>,
}

impl<'r> Comparison<'r> {
    /// Compares cells with the same key; those that a side has several times
    /// in their order.
    pub fn new(a: &'r Results, b: &'r Results) -> Self {
        let mut only_b: Vec<&Cell> = b.cells.iter().collect();
        let (mut pairs, mut only_a) = (Vec::new(), Vec::new());
        for cell in &a.cells {
            match only_b.iter().position(|other| other.key() == cell.key()) {
                Some(at) => pairs.push(pair(cell, only_b.remove(at))),
                None => only_a.push(cell),
            }
        }
        Self {
            pairs,
            only_a,
            only_b,
        }
    }

    /// How many pairs have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.verdict() == verdict)
            .count()
    }
}

fn pair<'r>(a: &'r Cell, b: &'r Cell) -> Pair<'r> {
    let difference =
        |name: &str| Difference::between(a.histograms.get(name)?, b.histograms.get(name)?);
    let total = difference("total").filter(|_| a.stats.is_some() && b.stats.is_some());
    let sign = total.as_ref().map_or(0, |total| total.by().signum());
    let stages = a.stages().map(|stage| &stage.name);
    let changed = stages.filter_map(|name| Some((name.clone(), difference(name)?)));
    let stage = changed
        .filter(|(_, stage)| {
            stage.verdict() != Verdict::NoDifference && stage.by().signum() == sign
        })
        .max_by_key(|(_, stage)| stage.by().abs());
    Pair { a, b, total, stage }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::cell;
    use crate::{Stage, Stats};
    use plan::Wait;

    /// A run of one cell, whose stage `kick` is a quarter of it.
    fn run(wait: Wait, median: u64) -> Results {
        let mut cell = cell(wait, "insns", Stats::default());
        cell.stages.push(Stage {
            name: "kick".into(),
            ..Stage::default()
        });
        cell.histograms = [("total", median), ("kick", median / 4)]
            .map(|(name, value)| (name.into(), vec![(value, 1000)]))
            .into();
        Results {
            cells: vec![cell],
            ..Results::default()
        }
    }

    #[test]
    fn a_verdict_has_its_direction_and_its_stage() {
        for (b, verdict, by) in [
            (400, Verdict::NoDifference, 0),
            (440, Verdict::Worse, 40),
            (360, Verdict::Better, -40),
        ] {
            let (a, b) = (run(Wait::Wfi, 400), run(Wait::Wfi, b));
            let comparison = Comparison::new(&a, &b);
            assert_eq!(comparison.count(verdict), 1);
            let pair = &comparison.pairs[0];
            let total = pair.total.as_ref().unwrap();
            assert_eq!((total.by(), total.percent()), (by, by as f64 / 4.0));
            let stage = pair.stage.as_ref().map(|(name, kick)| (&**name, kick.by()));
            assert_eq!(stage, (by != 0).then_some(("kick", by / 4)));
        }
    }

    #[test]
    fn what_one_side_lacks_is_not_compared() {
        let (a, b) = (run(Wait::Wfi, 400), run(Wait::Wfe, 400));
        let comparison = Comparison::new(&a, &b);
        assert!(comparison.pairs.is_empty());
        assert_eq!((comparison.only_a.len(), comparison.only_b.len()), (1, 1));
        let mut skipped = run(Wait::Wfi, 400);
        skipped.cells[0].stats = None;
        assert_eq!(Comparison::new(&a, &skipped).count(Verdict::Unknown), 1);
    }
}
