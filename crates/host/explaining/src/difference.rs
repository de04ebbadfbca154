// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two explanations of a cell, function by function.

use std::collections::BTreeMap;

use crate::explanation::{Explained, ExplainedCell};
use crate::walk::Key;

/// A function's counts in A's and in B's sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file and the name of the function.
    pub function: Key,
    /// Exception level.
    pub level: u8,
    /// Instructions or cycles on the path, for A and for B.
    pub counts: [u64; 2],
    /// Instructions or cycles off the path, for A and for B.
    pub off_path: [u64; 2],
}

impl Change {
    /// Returns by how much B's count on the path exceeds A's count.
    pub const fn excess(&self) -> i64 {
        self.counts[1].cast_signed() - self.counts[0].cast_signed()
    }

    /// Returns the kind of change.
    pub const fn kind(&self) -> &'static str {
        match (self.counts, self.off_path) {
            ([0, _], [0, _]) => "new",
            ([0, _], _) => "onto the path",
            ([_, 0], [_, 0]) => "gone",
            ([_, 0], _) => "off the path",
            ([a, b], _) if b > a => "longer",
            ([a, b], _) if b < a => "shorter",
            _ => "equal",
        }
    }
}

/// The difference between two samples, A and B. The functions' changes add up to the difference in path length.
#[derive(Debug)]
pub struct Difference<'e> {
    /// The cells of A and B.
    pub cells: [&'e ExplainedCell; 2],
    /// The functions that changed, the largest change first.
    pub changes: Vec<Change>,
    /// How many functions did not change, and the sum of their counts.
    pub alike: (usize, u64),
    /// Sums of the counts of A and B by level, for levels that are on either path.
    pub levels: BTreeMap<u8, [u64; 2]>,
    /// The first place where the paths diverge.
    pub parts: Option<Parting>,
}

/// The first place where two paths diverge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// Number of instructions that both paths execute before they diverge.
    pub after: u64,
    /// The last function that both paths execute.
    pub function: String,
    /// How A and B continue.
    pub to: [String; 2],
}

impl<'e> Difference<'e> {
    /// Compares the cells that A and B have in common.
    pub fn compare_all([a, b]: [&'e Explained; 2]) -> Vec<Self> {
        let both = b
            .cells
            .iter()
            .filter_map(|of_b| Some([a.matching_cell(of_b)?, of_b]));
        both.map(Self::compare).collect()
    }

    /// Compares two samples of a cell.
    pub fn compare(cells: [&'e ExplainedCell; 2]) -> Self {
        let mut counts: BTreeMap<(u8, Key), [[u64; 2]; 2]> = BTreeMap::new();
        for (side, cell) in cells.iter().enumerate() {
            for one in &cell.functions {
                let key = (one.level, (one.image.clone(), one.name.clone()));
                let [on, off] = counts.entry(key).or_default();
                on[side] += one.count;
                off[side] += one.off_path;
            }
        }
        let change = |((level, function), [counts, off_path]): ((u8, Key), [[u64; 2]; 2])| Change {
            function,
            level,
            counts,
            off_path,
        };
        let changes = counts.into_iter().map(change);
        let (mut changes, alike): (Vec<Change>, Vec<Change>) =
            changes.partition(|change| change.excess() != 0);
        let mut levels: BTreeMap<u8, [u64; 2]> = BTreeMap::new();
        for change in changes.iter().chain(&alike) {
            let sums = levels.entry(change.level).or_default();
            for (sum, count) in sums.iter_mut().zip(change.counts) {
                *sum += count;
            }
        }
        levels.retain(|_, sums| *sums != [0, 0]);
        let alike = alike.iter().filter(|one| one.counts[0] != 0);
        let alike: Vec<u64> = alike.map(|one| one.counts[0]).collect();
        changes.sort_by_key(|change| std::cmp::Reverse(change.excess().unsigned_abs()));
        Self {
            cells,
            changes,
            alike: (alike.len(), alike.iter().sum()),
            levels,
            parts: find_parting(cells),
        }
    }

    /// Returns the `top` largest changes, and the remaining changes. A quarter of `top` is reserved for changes in the
    /// rarer direction: if most functions disappear, the few new ones are the reason.
    pub fn split_largest(&self, top: usize) -> (Vec<&Change>, Vec<&Change>) {
        let longer = |change: &&Change| change.excess() > 0;
        let few = self.changes.iter().filter(longer).count() <= self.changes.len() / 2;
        let rare: Vec<&Change> = self
            .changes
            .iter()
            .filter(|one| longer(one) == few)
            .collect();
        let rare = &rare[..rare.len().min(top.div_ceil(4))];
        let usual = self.changes.iter().filter(|one| !rare.contains(one));
        let usual: Vec<&Change> = usual.take(top.saturating_sub(rare.len())).collect();
        let chosen = |one: &&Change| rare.contains(one) || usual.contains(one);
        self.changes.iter().partition(chosen)
    }

    /// Returns by how much the path of B is longer.
    pub const fn total(&self) -> i64 {
        self.cells[1].path.cast_signed() - self.cells[0].path.cast_signed()
    }
}

/// A visit of the path to a function: the function's level, file and name, and the number of instructions that it
/// executes.
type Visit<'e> = ((u8, &'e str, &'e str), u64);

/// Returns the visits of a path. Work off the path does not end a visit, and neither does a change of callers.
fn visits(cell: &ExplainedCell) -> Vec<Visit<'_>> {
    let mut visits: Vec<Visit<'_>> = Vec::new();
    let on_path = cell.steps.iter().filter(|step| step.on_path);
    for step in on_path.filter(|step| step.instructions != 0) {
        let function = (step.level, step.image.as_str(), step.function.as_str());
        match visits.last_mut().filter(|_| step.via.is_none()) {
            Some((last, count)) if *last == function => *count += step.instructions,
            _ => visits.push((function, step.instructions)),
        }
    }
    visits
}

/// Finds where the paths diverge: at the first visit that differs in its function or in its number of instructions.
fn find_parting(cells: [&ExplainedCell; 2]) -> Option<Parting> {
    let [a, b] = cells.map(visits);
    let place = a.iter().zip(&b).take_while(|(one, other)| one == other);
    let place = place.count();
    let both = [a.get(place), b.get(place)];
    let (function, to) = match both {
        [None, None] => return None,
        [Some((one, count)), Some((other, others))] if one == other => {
            let of_it = |count| format!("executes {count} of its instructions");
            (one.2, [count, others].map(of_it))
        }
        _ => {
            let to = |visit: Option<&Visit<'_>>| match visit {
                Some(((_, _, name), _)) => format!("goes on with {name}"),
                None => "ends".into(),
            };
            let last = place.checked_sub(1).map(|last| a[last].0.2);
            (last.unwrap_or_default(), both.map(to))
        }
    };
    Some(Parting {
        after: a[..place].iter().map(|(_, count)| count).sum(),
        function: function.into(),
        to,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::cell_with_steps;

    #[test]
    fn explanations_of_different_options_are_compared_across_them() {
        let explained = |words: &[(&str, &str)]| {
            let mut cell = cell_with_steps("a 1 5");
            let words = words
                .iter()
                .map(|(key, word)| ((*key).into(), (*word).into()));
            cell.words = words.collect();
            Explained {
                cells: vec![cell],
                ..Explained::default()
            }
        };
        let a = explained(&[("workload", "ipi"), ("wait", "wfi"), ("atomics", "lse")]);
        let mut b = explained(&[("workload", "ipi"), ("wait", "wfi"), ("atomics", "llsc")]);
        assert_eq!(Difference::compare_all([&a, &b]).len(), 0);
        let apart = a.align(&mut b);
        assert_eq!(apart, [["atomics", "lse", "llsc"].map(String::from)]);
        assert_eq!(Difference::compare_all([&a, &b]).len(), 1);
        // Samples of different workloads are not compared.
        let mut b = explained(&[("workload", "timer"), ("wait", "wfi"), ("atomics", "lse")]);
        assert_eq!(a.align(&mut b).len(), 0);
        assert_eq!(Difference::compare_all([&a, &b]).len(), 0);
    }

    #[test]
    fn changes_add_up_to_the_difference() {
        let a = cell_with_steps("a 1 5, b 1 7, c 2 9");
        let b = cell_with_steps("a 1 5, b 1 3, d 1 20");
        let difference = Difference::compare([&a, &b]);
        let told: Vec<_> = difference
            .changes
            .iter()
            .map(|one| (one.function.1.as_str(), one.kind(), one.excess()))
            .collect();
        assert_eq!(
            told,
            [("d", "new", 20), ("c", "gone", -9), ("b", "shorter", -4)]
        );
        let sum: i64 = difference.changes.iter().map(Change::excess).sum();
        assert_eq!((sum, difference.total()), (7, 7));
    }

    #[test]
    fn what_comes_is_shown_among_what_goes() {
        let a = cell_with_steps("a 1 90, b 1 80, c 1 70, d 2 60, e 2 50, f 1 5");
        let b = cell_with_steps("x 1 3, y 1 2, f 1 5");
        let difference = Difference::compare([&a, &b]);
        let names = |changes: &[&Change]| {
            let names = changes.iter().map(|one| one.function.1.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        let (shown, rest) = difference.split_largest(4);
        assert_eq!(
            (names(&shown), names(&rest)),
            ("a b c x".into(), "d e y".into())
        );
        let (shown, rest) = difference.split_largest(20);
        assert_eq!((shown.len(), rest.len()), (7, 0));
        assert_eq!(difference.alike, (1, 5));
        let levels: Vec<_> = difference.levels.into_iter().collect();
        assert_eq!(levels, [(1, [245, 10]), (2, [110, 0])]);
    }

    #[test]
    fn ways_part_at_the_first_other_function_or_count() {
        let parts = |a, b| Difference::compare([&cell_with_steps(a), &cell_with_steps(b)]).parts;
        let at = |after, function: &str, to: [&str; 2]| {
            Some(Parting {
                after,
                function: function.into(),
                to: to.map(Into::into),
            })
        };
        assert_eq!(parts("a 1 5, b 1 7", "a 1 5, b 1 7"), None);
        assert_eq!(
            parts("a 1 5, b 1 7", "a 1 5, c 1 7"),
            at(5, "a", ["goes on with b", "goes on with c"])
        );
        assert_eq!(
            parts("a 1 5, b 1 7", "a 1 5"),
            at(5, "a", ["goes on with b", "ends"])
        );
        assert_eq!(
            parts("a 1 5, b 1 7", "a 1 6, b 1 7"),
            at(
                0,
                "a",
                [
                    "executes 5 of its instructions",
                    "executes 6 of its instructions"
                ]
            )
        );
        // Paths that continue at different levels diverge there, even if the functions have the same name.
        assert_eq!(
            parts("a 1 5, b 1 7", "a 1 5, b 2 7"),
            at(5, "a", ["goes on with b", "goes on with b"])
        );
    }
}
