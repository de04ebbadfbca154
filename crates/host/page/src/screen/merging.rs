// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges rows whose cells cost the same.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::Row;

/// Stands for the value of a swept dimension in a row, if the value makes no difference.
pub const ANY: &str = "any";

/// Stands for the trap in a row's name, if the trap makes no difference.
pub const ANY_TRAP: &str = ", any trap";

/// Merges rows that cost the same and differ only in the trap, or only in one swept value. A row for any value, or for
/// any trap, applies to all values or traps of the table, even to those whose own rows were merged into another row.
pub fn merge_equal_rows(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let swept = rows.first().map_or(0, |row| row.swept.len());
    let traps = Counted::count_values(&rows, |row| row.what.clone(), |row| row.trap.clone());
    // Values are merged first. Otherwise, a row for any trap would lack the values at which the trap matters.
    let merged = (0..swept).rev().fold(rows, |rows, place| {
        let way = |row: &Row<'_>| (row.what.clone(), row.trap.clone());
        let values = Counted::count_values(&rows, way, |row| row.swept[place].clone());
        merge_values(rows, place, &values)
    });
    merge_traps(merged, &traps)
}

/// For each kind of row, the distinct values that its rows have.
struct Counted<K>(BTreeMap<K, BTreeSet<String>>);

impl<K: Ord> Counted<K> {
    fn count_values(
        rows: &[Row<'_>],
        kind: impl Fn(&Row<'_>) -> K,
        value: impl Fn(&Row<'_>) -> String,
    ) -> Self {
        let mut counted: BTreeMap<K, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            counted.entry(kind(row)).or_default().insert(value(row));
        }
        Self(counted)
    }

    fn has_count(&self, kind: &K, count: usize) -> bool {
        self.0.get(kind).is_some_and(|values| values.len() == count)
    }
}

/// Merges rows that differ only in the trap, if the cost is the same with every trap.
fn merge_traps<'r>(rows: Vec<Row<'r>>, traps: &Counted<String>) -> Vec<Row<'r>> {
    let set = |row: &Row<'_>| (row.what.clone(), row.swept.clone());
    let alike: Vec<bool> = rows
        .iter()
        .map(|row| {
            let others = rows.iter().filter(|other| set(other) == set(row));
            let others: Vec<&Row<'_>> = others.collect();
            let all = traps.has_count(&row.what, others.len());
            all && others.iter().all(|other| cost_the_same(other, row))
        })
        .collect();
    let mut merged: Vec<Row<'_>> = Vec::new();
    for (row, alike) in rows.into_iter().zip(alike) {
        match merged.iter_mut().find(|one| alike && set(one) == set(&row)) {
            Some(one) => {
                if one.trap.is_empty() || row.trap.is_empty() {
                    one.trap = ANY_TRAP.into();
                }
                absorb_row(one, row);
            }
            None => merged.push(row),
        }
    }
    merged
}

/// Whether two rows cost the same in every column in which both have a cell. The bare machine has no cell with a trap.
fn cost_the_same(one: &Row<'_>, other: &Row<'_>) -> bool {
    let both = one
        .cells
        .iter()
        .zip(&other.cells)
        .map(|(one, other)| one.is_some() && other.is_some());
    let texts = one.texts.iter().zip(&other.texts);
    let mut shared = both.zip(texts).filter(|(both, _)| *both).peekable();
    shared.peek().is_some() && shared.all(|(_, (one, other))| one == other)
}

/// Merges rows that differ only in the swept value at index `place`, if the cost is the same with every value.
fn merge_values<'r>(
    rows: Vec<Row<'r>>,
    place: usize,
    values: &Counted<(String, String)>,
) -> Vec<Row<'r>> {
    let mut merged: Vec<Row<'_>> = Vec::new();
    let texts: Vec<_> = rows.iter().map(|row| row_set_key(row, place)).collect();
    let uniform: Vec<bool> = rows
        .iter()
        .zip(&texts)
        .map(|(row, set)| {
            let others = rows.iter().zip(&texts).filter(|(_, other)| *other == set);
            let others: Vec<_> = others.map(|(other, _)| other).collect();
            let all = values.has_count(&(row.what.clone(), row.trap.clone()), others.len());
            all && others.iter().all(|other| other.texts == row.texts)
        })
        .collect();
    for ((row, set), uniform) in rows.into_iter().zip(texts).zip(uniform) {
        let first = merged
            .iter_mut()
            .find(|one| uniform && row_set_key(one, place) == set);
        match first {
            Some(one) => {
                one.swept[place] = ANY.into();
                absorb_row(one, row);
            }
            None => merged.push(row),
        }
    }
    merged
}

/// Returns a row's name without the swept value at index `place`.
fn row_set_key(row: &Row<'_>, place: usize) -> (String, String, Vec<String>) {
    let mut swept = row.swept.clone();
    swept.remove(place);
    (row.what.clone(), row.trap.clone(), swept)
}

fn absorb_row<'r>(one: &mut Row<'r>, other: Row<'r>) {
    for (place, text) in other.texts.into_iter().enumerate() {
        if one.cells[place].is_none() {
            one.cells[place] = other.cells[place];
            one.texts[place] = text;
        }
    }
    let cells = other.cells.into_iter().flatten();
    one.others.extend(cells.chain(other.others));
    for mark in other.marks {
        if !one.marks.contains(&mark) {
            one.marks.push(mark);
        }
    }
}
