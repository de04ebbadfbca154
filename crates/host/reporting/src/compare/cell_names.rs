// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a comparison's cells: one for each, wherever it is mentioned, in the words of a run's screen.

use std::collections::{BTreeMap, BTreeSet};

use page::grid::Column;
use page::screen::words;
use page::table::names;
use plan::{DIMENSIONS, Info};
use results::Cell;
use results::compare::Comparison;

/// The names, by the words that define a cell: its operation, how it waits, how the wake-up arrives, and whatever else
/// distinguishes it.
pub struct CellNames(BTreeMap<Vec<String>, String>);

impl CellNames {
    /// Names all cells of a comparison, and those that one side alone has.
    pub fn of(found: &Comparison<'_>) -> Self {
        let lost = found.lost.iter().chain(&found.again).map(|lost| lost.cell);
        let pairs = found.pairs.iter().map(|pair| pair.cell);
        let cells = pairs.chain(lost).chain(found.added.iter().copied());
        let cells: BTreeMap<Vec<String>, &Cell> = cells.map(|cell| (cell.key(), cell)).collect();
        Self::of_cells(cells)
    }

    fn of_cells(cells: BTreeMap<Vec<String>, &Cell>) -> Self {
        let all: Vec<&Cell> = cells.values().copied().collect();
        let mut alike: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
        for cell in &all {
            alike.entry(worded(cell, &all)).or_default().push(cell);
        }
        let mut names = BTreeMap::new();
        for (name, cells) in alike {
            for cell in &cells {
                let rest = apart(cell, &cells);
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

/// Describes a cell in the words of a run's screen, as far as `all` differ.
fn worded(cell: &Cell, all: &[&Cell]) -> String {
    let differ = |keys: &[&str]| {
        let infos = || DIMENSIONS.iter().filter(|info| keys.contains(&info.key));
        all.iter()
            .any(|other| infos().any(|info| text(info, other) != text(info, all[0])))
    };
    let mut parts = Vec::new();
    if all.iter().any(|other| other.under != cell.under) {
        parts.push(cell.under.to_string());
    }
    let waits = ["wait", "trap", "poll-limit-us", "host-poll-us", "command"];
    if differ(&waits) || !cell.what.workload.is_linux() {
        parts.push(words::wait(cell, true) + &words::trap(cell, false));
    }
    if differ(&["deliver", "wake"]) {
        parts.push(words::arrival(cell).into());
    }
    match parts.is_empty() {
        true => cell.subject(),
        false => format!("{}: {}", cell.subject(), parts.join(", ")),
    }
}

/// Describes the values that distinguish a cell from others with equal words.
fn apart(cell: &Cell, alike: &[&Cell]) -> String {
    let infos = DIMENSIONS.iter().filter(|info| {
        let texts = alike.iter().map(|other| text(info, other));
        texts.collect::<BTreeSet<_>>().len() > 1
    });
    let told = infos.map(|info| format!(", {}", results::valued(info, &text(info, cell))));
    told.collect()
}

fn text(info: &Info, cell: &Cell) -> String {
    info.text(&cell.what).to_string()
}

/// Returns the columns that distinguish cells, and always the workload.
pub fn subject(cells: Vec<&Cell>) -> Vec<Column> {
    let workloads = cells.iter().map(|cell| cell.table()).collect();
    let others = names(cells)
        .into_iter()
        .filter(|column| column.title() != "workload");
    let mut columns = vec![Column::words("workload", workloads)];
    columns.extend(others);
    columns
}
