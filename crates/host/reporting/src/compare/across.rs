// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aligns runs that have no cell in common because one option differs, so that their cells are compared across this
//! option.

use std::collections::BTreeSet;

use plan::Info;
use results::merge::Run;
use results::{Cell, keys};

use super::Side;

/// Keys whose values make a cell a different measurement, or for which there is another kind of comparison.
const APART: [&str; 3] = ["workload", "under", "system"];

/// If exactly one option differs between all cells of A and all cells of B, gives B's cells the value that A's cells
/// have, and adds each side's own value to the side's name. Otherwise changes nothing.
pub fn move_sole_difference_to_names(a: &mut Side, b: &mut Side) {
    let apart: Vec<_> = separating_keys(&a.runs, &b.runs).collect();
    let Ok([(key, of_a, of_b)]) = <[_; 1]>::try_from(apart) else {
        return;
    };
    if APART.contains(&key) || has_common(a, &b.runs) {
        return;
    }
    let mut aligned = b.runs.clone();
    let mut all = aligned.iter_mut().flat_map(|run| &mut run.results.cells);
    if !all.all(|cell| set_word(cell, key, &of_a)) || !has_common(a, &aligned) {
        return;
    }
    b.runs = aligned;
    for (side, word) in [(a, of_a), (b, of_b)] {
        side.shown = match Info::find(key) {
            Some(info) => format!("{} ({})", side.shown, results::valued(info, &word)),
            None => format!("{} ({key} {word})", side.shown),
        };
    }
}

/// Returns the keys that have one value in all cells of `a` and another value in all cells of `b`, with these two
/// values.
pub fn separating_keys(
    a: &[Run],
    b: &[Run],
) -> impl Iterator<Item = (&'static str, String, String)> {
    keys()
        .filter_map(|key| Some((key, common_word(a, key)?, common_word(b, key)?)))
        .filter(|(_, a, b)| a != b)
}

/// Whether `a` and `runs` have a cell in common.
fn has_common(a: &Side, runs: &[Run]) -> bool {
    let is_alike = |cell: &Cell, other: &Cell| cell.is_like(other) && cell.under == other.under;
    cells_of_runs(&a.runs).any(|cell| cells_of_runs(runs).any(|other| is_alike(cell, other)))
}

fn cells_of_runs(runs: &[Run]) -> impl Iterator<Item = &Cell> {
    runs.iter().flat_map(|run| &run.results.cells)
}

/// Returns the value of `key` if all cells have it.
pub fn common_word(runs: &[Run], key: &str) -> Option<String> {
    let words: BTreeSet<Option<String>> = cells_of_runs(runs).map(|cell| cell.word(key)).collect();
    match words.len() {
        1 => words.into_iter().next().flatten(),
        _ => None,
    }
}

/// Sets the value of `key`, and returns whether the cell can have it.
fn set_word(cell: &mut Cell, key: &'static str, word: &str) -> bool {
    match key {
        "cpus" => word.parse().map(|cpus| cell.cpus = cpus).is_ok(),
        _ => cell.what.set(key, word).is_ok(),
    }
}
