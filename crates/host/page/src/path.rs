// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns for samples that are divided into path and other work: the path, and the parts of the work of all CPUs.

use results::{Cell, Critical};

use crate::column::{Column, TOO_FEW, format_rate, thousands};

/// Name of the quantity that a divided sample measures.
pub const WORK: &str = "work of all CPUs";

/// Whether all cells have divided samples.
pub fn all_have_paths(cells: &[&Cell]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| cell.critical.is_some())
}

/// Whether some cells have divided samples.
pub fn any_has_path(cells: &[&Cell]) -> bool {
    cells.iter().any(|cell| cell.critical.is_some())
}

/// Returns the leading columns: the path, and the path without bookkeeping instructions. Returns none unless all cells
/// have a path.
pub fn path_columns(cells: &[&Cell]) -> Vec<Column> {
    type Field = fn(&Critical) -> u64;
    let fields: [(&str, u64, Field); 3] = [
        ("net", 500, |critical| critical.net.p50),
        ("p50", 500, |critical| critical.path.p50),
        ("p99", 990, |critical| critical.path.p99),
    ];
    let column = |(title, per_mille, field): (&str, u64, Field)| {
        let text = |critical: &Critical| match critical.path.supports(per_mille) {
            true => thousands(field(critical) as f64),
            false => TOO_FEW.into(),
        };
        let texts = path_texts(cells, text);
        let any = texts.iter().any(|text| text != TOO_FEW);
        any.then(|| Column::numbers("path", title, texts))
    };
    match all_have_paths(cells) {
        true => fields.into_iter().filter_map(column).collect(),
        false => Vec::new(),
    }
}

/// Returns columns with the percentage of the samples' instructions at each exception level, and a column with the
/// bookkeeping instructions per sample.
pub fn level_columns(cells: &[&Cell]) -> Vec<Column> {
    type Part = fn(&Critical) -> u64;
    let parts: [(&str, Part); 5] = [
        ("el0", |critical| critical.work.el0),
        ("el1", |critical| critical.work.el1),
        ("el2", |critical| critical.work.el2),
        ("el3", |critical| critical.work.el3),
        ("skipped", |critical| critical.work.skipped),
    ];
    let mut columns = Vec::new();
    for (title, part) in parts {
        let any = cells
            .iter()
            .filter_map(|cell| cell.critical.as_ref())
            .any(|critical| part(critical) != 0);
        let share = |critical: &Critical| match critical.work.total_work() {
            0 => "·".into(),
            all => format!("{:.1}", part(critical) as f64 * 100.0 / all as f64),
        };
        if any {
            columns.push(Column::numbers("work %", title, path_texts(cells, share)));
        }
    }
    let kept = |critical: &Critical| {
        let samples = (critical.samples + critical.unclear).max(1);
        format_rate(critical.work.total_bookkeeping() as f64 / samples as f64)
    };
    columns.push(Column::numbers(
        "/op",
        "bookkeeping",
        path_texts(cells, kept),
    ));
    columns
}

/// Smallest number of WFIs per sample, trapped in pauses between samples, for which the table gets a note.
const PAUSED: f64 = 0.5;

/// Returns a note if WFIs are trapped in the pauses between samples, because `exits/op` counts only the exits within
/// samples.
pub fn pause_note(cells: &[&Cell]) -> Option<String> {
    let outside = |cell: &&&Cell| {
        let more = cell.per_sample(&cell.exits, "wfi") - cell.exits_per_sample("wfi");
        cell.what.gap_us != 0 && cell.critical.is_some() && more >= PAUSED
    };
    let count = cells.iter().filter(outside).count();
    let of = if count == cells.len() {
        "every cell".into()
    } else {
        format!("{count} of {} cells", cells.len())
    };
    (count > 0).then(|| {
        format!(
            "In {of}, WFI traps in the pause before a sample (--gap-us). This exit and its instructions are not part of the \
             sample, so these figures leave it out; `exits` of results.json has it."
        )
    })
}

/// If there are governors that learn, returns a note that they start afresh with each block of wake-ups.
pub fn learning_note(cells: &[&Cell]) -> Option<String> {
    let count = cells
        .iter()
        .filter(|cell| cell.what.wait.governor().is_some())
        .count();
    (count > 0).then(|| {
        format!(
            "a governor begins to learn in each block of wake-ups: figures of {count} of {} cells depend on how many there are (n)",
            cells.len()
        )
    })
}

/// Explains the path columns, as lines below the tables, and counts the samples without a path.
pub fn column_legend<'c>(cells: impl Iterator<Item = &'c Cell> + Clone) -> Vec<String> {
    let apart = cells.filter_map(|cell| cell.critical.as_ref());
    if apart.clone().next().is_none() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        "path: from the waker's store to the woken task, without work that is done later or in parallel; net: the \
         path without bookkeeping"
            .into(),
        "bookkeeping: statistics, the clock that ends the sample, flags, the harness's loop; exits and \
         work are of the samples themselves"
            .into(),
    ];
    lines.extend(pathless_note(apart));
    lines
}

/// Counts the samples without a path, if there are any.
pub fn pathless_note<'c>(apart: impl Iterator<Item = &'c Critical>) -> Option<String> {
    let unclear: u64 = apart.map(|critical| critical.unclear).sum();
    (unclear > 0).then(|| {
        format!(
            "Samples without a path: {unclear} (the emulator changed CPUs in the middle of each)."
        )
    })
}

fn path_texts(cells: &[&Cell], text: impl Fn(&Critical) -> String) -> Vec<String> {
    let text = |cell: &&Cell| cell.critical.as_ref().map(&text).unwrap_or_default();
    cells.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wfis_of_pauses_are_named_where_the_samples_have_none() {
        let mut cell = Cell {
            made: 28,
            critical: Some(Critical {
                samples: 24,
                exits: [("wfi".into(), 0)].into(),
                ..Critical::default()
            }),
            exits: [("wfi".into(), 28)].into(),
            ..Cell::default()
        };
        assert_eq!(pause_note(&[&cell]), None);
        cell.what.gap_us = 50;
        let told = pause_note(&[&cell]).unwrap();
        assert!(
            told.contains("In every cell, WFI traps in the pause"),
            "{told}"
        );
        let plain = Cell::default();
        let told = pause_note(&[&plain, &cell]).unwrap();
        assert!(told.contains("In 1 of 2 cells, WFI"), "{told}");
        // If these exits were within samples, the column `exits/op` would count them already.
        if let Some(critical) = &mut cell.critical {
            critical.exits.insert("wfi".into(), 24);
        }
        assert_eq!(pause_note(&[&cell]), None);
    }
}
