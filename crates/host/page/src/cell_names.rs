// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of cells, in the words of a run's first screen. A cell has the same name wherever it is mentioned.

use std::collections::{BTreeMap, BTreeSet};

use crate::screen::words;
use plan::{DIMENSIONS, Info};
use results::{Cell, keys};

/// The names of cells, by the words that define a cell: its operation, how it waits, how the wake-up arrives, and any
/// other distinguishing dimension.
#[derive(Debug)]
pub struct CellNames(BTreeMap<Vec<String>, String>);

impl CellNames {
    /// Names all `cells`.
    pub fn for_cells<'r>(cells: impl IntoIterator<Item = &'r Cell>) -> Self {
        let cells = cells.into_iter().map(|cell| (cell.key(), cell));
        let cells: BTreeMap<Vec<String>, &Cell> = cells.collect();
        let all: Vec<&Cell> = cells.values().copied().collect();
        let mut alike: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
        for cell in &all {
            alike
                .entry(describe_cell(cell, &all))
                .or_default()
                .push(cell);
        }
        let mut names = BTreeMap::new();
        for (name, cells) in alike {
            for cell in &cells {
                let rest = distinguishing_words(cell, &cells);
                names.insert(cell.key(), format!("{name}{rest}"));
            }
        }
        Self(names)
    }

    /// Returns a cell's name.
    pub fn name(&self, cell: &Cell) -> &str {
        self.0.get(&cell.key()).map_or("", String::as_str)
    }
}

/// Describes a cell in the words of a run's first screen, but only by what varies in `all`.
fn describe_cell(cell: &Cell, all: &[&Cell]) -> String {
    let differ = |keys: &[&str]| {
        let infos = || DIMENSIONS.iter().filter(|info| keys.contains(&info.key));
        all.iter()
            .any(|other| infos().any(|info| value_text(info, other) != value_text(info, all[0])))
    };
    let mut parts = Vec::new();
    if all.iter().any(|other| other.under != cell.under) {
        parts.push(cell.under.to_string());
    }
    let waits = ["wait", "trap", "poll-limit-us", "host-poll-us", "command"];
    if differ(&waits) || !cell.what.workload.is_linux() {
        parts.push(describe_wait(cell));
    }
    if differ(&["deliver", "wake"]) {
        parts.push(words::arrival_text(cell).into());
    }
    match parts.is_empty() {
        true => cell.operation_name(),
        false => format!("{}: {}", cell.operation_name(), parts.join(", ")),
    }
}

/// Describes the wait and its trap, except for Linux, which has only one wait.
fn describe_wait(cell: &Cell) -> String {
    let trap = words::trap_text(cell, false);
    match (cell.what.workload.is_linux(), trap.as_str()) {
        (false, _) => words::wait_text(cell, true) + &trap,
        (true, _) if cell.what.workload.is_a_run() => words::wait_text(cell, true) + &trap,
        (true, "") => "no trap".into(),
        (true, trap) => trap.trim_start_matches(", ").into(),
    }
}

/// Returns the values that distinguish a cell from the cells in `alike`, all of which would have the same description
/// without these values.
fn distinguishing_words(cell: &Cell, alike: &[&Cell]) -> String {
    let word = |key: &str, cell: &Cell| cell.word(key).unwrap_or_default();
    let keys = keys().filter(|key| {
        let words = alike.iter().map(|other| word(key, other));
        words.collect::<BTreeSet<_>>().len() > 1
    });
    let told = keys.map(|key| match (key, Info::find(key), word(key, cell)) {
        ("deliver", _, word) => format!(" ({word})"),
        (_, Some(info), word) => format!(", {}", results::valued(info, &word)),
        (key, None, word) => format!(", {key} {word}"),
    });
    told.collect()
}

fn value_text(info: &Info, cell: &Cell) -> String {
    info.text(&cell.what).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    #[test]
    fn cells_of_other_keys_have_other_names() {
        let first = results().cells.swap_remove(1);
        let mut more = first.clone();
        more.cpus = first.cpus + 6;
        let names = CellNames::for_cells([&first, &more]);
        assert_ne!(names.name(&first), names.name(&more));
    }
}
