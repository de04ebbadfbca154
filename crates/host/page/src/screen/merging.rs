// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows that cost the same become one row.

use super::rows::Row;

/// A swept value that makes no difference to a row.
pub const ANY: &str = "any";

/// Merges rows that differ only in the trap, or only in a swept value, and cost the same.
pub fn merged(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let swept = rows.first().map_or(0, |row| row.swept.len());
    // Values first: a row of any trap would lack the values at which the trap makes a difference.
    let merged = (0..swept).rev().fold(rows, of_values);
    of_traps(merged)
}

fn of_traps(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let mut merged: Vec<Row<'_>> = Vec::new();
    for row in rows {
        let same = merged
            .iter_mut()
            .find(|one| (&one.what, &one.swept) == (&row.what, &row.swept) && agree(one, &row));
        let Some(one) = same else {
            merged.push(row);
            continue;
        };
        if one.trap.is_empty() {
            one.trap = ", any trap".into();
        }
        absorb(one, row);
    }
    merged
}

/// Whether two rows cost the same wherever both have a cell: the bare machine has none with a trap.
fn agree(one: &Row<'_>, other: &Row<'_>) -> bool {
    let both = one
        .cells
        .iter()
        .zip(&other.cells)
        .map(|(one, other)| one.is_some() && other.is_some());
    let texts = one.texts.iter().zip(&other.texts);
    let mut shared = both.zip(texts).filter(|(both, _)| *both).peekable();
    shared.peek().is_some() && shared.all(|(_, (one, other))| one == other)
}

/// Merges the rows of each set that differ only in the value at `place`, if all of the set cost the same.
fn of_values(rows: Vec<Row<'_>>, place: usize) -> Vec<Row<'_>> {
    let mut merged: Vec<Row<'_>> = Vec::new();
    let texts: Vec<_> = rows.iter().map(|row| set_of(row, place)).collect();
    let uniform: Vec<bool> = rows
        .iter()
        .zip(&texts)
        .map(|(row, set)| {
            let mut others = rows.iter().zip(&texts).filter(|(_, other)| *other == set);
            others.all(|(other, _)| other.texts == row.texts)
        })
        .collect();
    for ((row, set), uniform) in rows.into_iter().zip(texts).zip(uniform) {
        let first = merged
            .iter_mut()
            .find(|one| uniform && set_of(one, place) == set);
        match first {
            Some(one) => {
                one.swept[place] = ANY.into();
                absorb(one, row);
            }
            None => merged.push(row),
        }
    }
    merged
}

/// A row's name, without the value at `place`.
fn set_of(row: &Row<'_>, place: usize) -> (String, String, Vec<String>) {
    let mut swept = row.swept.clone();
    swept.remove(place);
    (row.what.clone(), row.trap.clone(), swept)
}

fn absorb<'r>(one: &mut Row<'r>, other: Row<'r>) {
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
