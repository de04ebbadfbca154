// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that have no cell in common because one option differs: their cells are compared across it.

use std::collections::BTreeSet;

use plan::Info;
use results::{Cell, keys};

use super::Side;

/// Words that make a cell another measurement, or that have a comparison of their own.
const APART: [&str; 3] = ["workload", "under", "system"];

/// If exactly one option keeps all cells apart, gives B's cells the value that A's have, and names both values with the
/// sides. Otherwise changes nothing.
pub fn align(a: &mut Side, b: &mut Side) {
    let is_common = cells(a).any(|cell| cells(b).any(|other| is_alike(cell, other)));
    let mut apart = keys().filter_map(|key| Some((key, only(a, key)?, only(b, key)?)));
    let mut apart = apart.by_ref().filter(|(_, a, b)| a != b);
    let (Some((key, of_a, of_b)), None) = (apart.next(), apart.next()) else {
        return;
    };
    if is_common || APART.contains(&key) {
        return;
    }
    let mut aligned: Vec<Cell> = cells(b).cloned().collect();
    if !aligned.iter_mut().all(|cell| set(cell, key, &of_a)) {
        return;
    }
    if !aligned
        .iter()
        .any(|cell| cells(a).any(|other| is_alike(cell, other)))
    {
        return;
    }
    for cell in b.runs.iter_mut().flat_map(|run| &mut run.results.cells) {
        set(cell, key, &of_a);
    }
    for (side, word) in [(a, of_a), (b, of_b)] {
        side.shown = match Info::find(key) {
            Some(info) => format!("{} ({})", side.shown, results::valued(info, &word)),
            None => format!("{} ({key} {word})", side.shown),
        };
    }
}

fn is_alike(cell: &Cell, other: &Cell) -> bool {
    cell.is_like(other) && cell.under == other.under
}

fn cells(side: &Side) -> impl Iterator<Item = &Cell> {
    side.runs.iter().flat_map(|run| &run.results.cells)
}

/// Returns the value of `key` if all cells have it.
fn only(side: &Side, key: &str) -> Option<String> {
    let words: BTreeSet<Option<String>> = cells(side).map(|cell| cell.word(key)).collect();
    match words.len() {
        1 => words.into_iter().next().flatten(),
        _ => None,
    }
}

/// Sets the value of `key`, and returns whether the cell can have it.
fn set(cell: &mut Cell, key: &'static str, word: &str) -> bool {
    match key {
        "cpus" => word.parse().map(|cpus| cell.cpus = cpus).is_ok(),
        _ => cell.what.set(key, word).is_ok(),
    }
}
