// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares cells from several machines. Each machine has its own unit.
//!
//! Instructions and cycles can't be converted into each other, so values of two machines are never put on one axis,
//! subtracted or divided. Only pure numbers are compared: the ratio of a cell to a reference cell of its own machine,
//! and the order of the cells on each machine.

mod order;

use std::collections::{BTreeMap, BTreeSet};

use results::merge::Run;
use results::{Cell, keys};

use crate::column::Column;
use crate::columns::MARK;
use crate::scale::{Scale, shown_median};
use order::Order;

/// Cells of one workload that were measured on at least two machines.
#[derive(Debug)]
pub struct Group<'r> {
    /// The machines.
    runs: &'r [Run],
    /// Workload and shape.
    pub title: String,
    /// A row for each cell: its measurement on each machine.
    rows: Vec<Row<'r>>,
}

/// The measurement of one cell on each machine. `None` for a machine on which the cell was not measured.
type Row<'r> = Vec<Option<&'r Cell>>;

/// The words of the preferred reference cell: under Rouse, an injected interrupt ends a WFI that is not trapped. A run
/// may lack this cell.
const REFERENCE: [(&str, &str); 5] = [
    ("under", "rouse"),
    ("wait", "wfi"),
    ("trap", "none"),
    ("deliver", "inject"),
    ("wake", "ipi"),
];

/// Returns the groups. There are none if there is only one machine.
pub fn comparable_groups(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known: BTreeSet<Vec<String>> = BTreeSet::new();
    for cell in runs.iter().flat_map(|run| &run.results.cells) {
        let row: Row<'_> = runs.iter().map(|run| measured_twin(run, cell)).collect();
        if row.iter().flatten().count() < 2 || !known.insert(cell.key()) {
            continue;
        }
        let title = cell.operation_name();
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                runs,
                title,
                rows: vec![row],
            }),
        }
    }
    groups
}

/// Returns the cell of `run` that has the same words as `cell`, if it was measured.
fn measured_twin<'r>(run: &'r Run, cell: &Cell) -> Option<&'r Cell> {
    let mut cells = run.results.cells.iter();
    // Comparing all words as text takes long, and there are many cells if there are many pairs, so the pairs are
    // compared first.
    let alike = |other: &&Cell| other.stats.is_some() && other.what.pair == cell.what.pair;
    cells.find(|other| alike(other) && other.key() == cell.key())
}

/// Describes how the orders of the cells differ between machines, one sentence per line.
pub fn order_sentences(groups: &[Group<'_>]) -> Vec<String> {
    groups.iter().flat_map(Group::group_sentences).collect()
}

impl<'r> Group<'r> {
    /// Returns the number of cells.
    pub fn cell_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the cells that machine number `run` measured, in the order of the rows.
    pub fn measured_cells(&self, run: usize) -> Vec<&'r Cell> {
        self.rows.iter().filter_map(|row| row[run]).collect()
    }

    /// Returns the row of [`REFERENCE`] if every machine has measured it, or else the first row that every machine has
    /// measured.
    fn reference_row(&self) -> Option<&Row<'r>> {
        let whole = |row: &&Row<'_>| row.iter().all(Option::is_some);
        let is_reference = |row: &&Row<'_>| {
            let has =
                |&(key, word): &(&str, &str)| any_cell(row).word(key).as_deref() == Some(word);
            REFERENCE.iter().all(has)
        };
        let mut rows = self.rows.iter().filter(whole);
        rows.clone().find(is_reference).or_else(|| rows.next())
    }

    /// Returns the name of the reference cell.
    pub fn reference_name(&self) -> Option<String> {
        self.reference_row().map(|row| self.row_name(row))
    }

    /// Returns the table: the cells, and for each machine the median in its own unit and the ratio to its own reference
    /// cell.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for key in self.distinguishing_keys() {
            let words = self.rows.iter().map(|row| cell_word(any_cell(row), key));
            columns.push(match is_number(key) {
                false => Column::words(key, words.collect()),
                true => Column::numbers("", key, words.map(or_dash).collect()),
            });
        }
        for (at, run) in self.runs.iter().enumerate() {
            if self.measured_cells(at).is_empty() {
                continue;
            }
            let title = format!("{}: {}", run.label, unit_name(run));
            let column = |name: &str, text: &dyn Fn(&Cell) -> String| {
                let texts = self.rows.iter().map(|row| row[at].map_or("-".into(), text));
                Column::numbers(&title, name, texts.collect())
            };
            let scale = Scale::for_results(&run.results);
            columns.push(column("p50", &|cell| {
                let mark = if cell.not_modelled.is_empty() {
                    ""
                } else {
                    MARK
                };
                shown_median(cell)
                    .map_or("-".into(), |p50| format!("{}{mark}", scale.show_value(p50)))
            }));
            let reference = self
                .reference_row()
                .and_then(|row| row[at])
                .and_then(shown_median);
            columns.push(column(
                "ratio",
                &|cell| match (shown_median(cell), reference) {
                    (Some(p50), Some(one @ 1..)) => format!("{:.2}", p50 as f64 / one as f64),
                    _ => "-".into(),
                },
            ));
        }
        columns
    }

    /// Returns the keys that distinguish the group's cells: words, and those numbers that differ among cells whose
    /// words are all equal. So a limit that follows from the way of waiting is left out.
    fn distinguishing_keys(&self) -> Vec<&'static str> {
        let (numbers, words): (Vec<&str>, Vec<&str>) = keys().partition(|key| is_number(key));
        let differ = |rows: &[&Row<'_>], key: &str| {
            let values = rows.iter().map(|row| cell_word(any_cell(row), key));
            values.collect::<BTreeSet<_>>().len() > 1
        };
        let all: Vec<&Row<'_>> = self.rows.iter().collect();
        let said = |row: &Row<'_>| -> Vec<String> {
            words
                .iter()
                .map(|key| cell_word(any_cell(row), key))
                .collect()
        };
        let mut alike: BTreeMap<Vec<String>, Vec<&Row<'_>>> = BTreeMap::new();
        for row in &self.rows {
            alike.entry(said(row)).or_default().push(row);
        }
        let told = |key: &&str| match is_number(key) {
            true => alike.values().any(|rows| differ(rows, key)),
            false => *key == "wait" || differ(&all, key),
        };
        words.iter().chain(&numbers).copied().filter(told).collect()
    }

    /// Names the cell of a row by the words of [`Self::distinguishing_keys`]: `wfi none inject ipi, gap-us 20`.
    fn row_name(&self, row: &Row<'_>) -> String {
        let (mut words, mut numbers) = (Vec::new(), String::new());
        for key in self.distinguishing_keys() {
            match cell_word(any_cell(row), key) {
                word if word.is_empty() || word == "0" => {}
                word if is_number(key) => numbers += &format!(", {key} {word}"),
                word => words.push(word),
            }
        }
        words.join(" ") + &numbers
    }

    /// Describes how the order of the cells on each machine differs from their order on the first machine.
    fn group_sentences(&self) -> Vec<String> {
        let (first, others) = (&self.runs[0], self.runs.iter().enumerate().skip(1));
        let told = others.filter_map(|(at, run)| {
            let p50 = |at: usize, row: &Row<'_>| shown_median(row[at]?);
            let both: Vec<&Row<'_>> = self
                .rows
                .iter()
                .filter(|row| p50(0, row).is_some() && p50(at, row).is_some())
                .collect();
            let medians =
                |at: usize| -> Vec<u64> { both.iter().filter_map(|row| p50(at, row)).collect() };
            let order = Order::compare(medians(0), medians(at))?;
            let names: Vec<String> = both.iter().map(|row| self.row_name(row)).collect();
            let by = [first, run].map(|run| format!("{} ({})", unit_name(run), run.label));
            Some(format!(
                "{}: {}",
                self.title,
                order.order_sentence(&names, &by)
            ))
        });
        told.collect()
    }
}

/// Returns some cell of a row. Any cell will do, because all cells of a row have the same words.
fn any_cell<'r>(row: &Row<'r>) -> &'r Cell {
    row.iter()
        .flatten()
        .next()
        .expect("a row has at least two cells")
}

/// Whether the word `key` of a cell is a number. The number 0 means that the dimension does not apply.
fn is_number(key: &str) -> bool {
    key.ends_with("-us") || key == "cpus"
}

fn or_dash(number: String) -> String {
    match number.as_str() {
        "0" => "-".into(),
        _ => number,
    }
}

fn cell_word(cell: &Cell, key: &str) -> String {
    cell.word(key).unwrap_or_default()
}

/// Names the unit of a machine.
fn unit_name(run: &Run) -> String {
    let scale = Scale::for_results(&run.results);
    let unit = scale.unit_of_results(&run.results);
    match (unit, scale.of_host) {
        ("", _) => "unknown unit".into(),
        (unit, true) => format!("{unit} of the host's threads"),
        (unit, false) => unit.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
