// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a comparison's cells: one for each, wherever it is mentioned.

use std::collections::BTreeMap;

use page::grid::Column;
use page::table::names;
use results::Cell;
use results::compare::Comparison;

/// The names, by the words that define a cell: its workload and the words in which the cells differ.
pub struct CellNames(BTreeMap<Vec<String>, String>);

impl CellNames {
    /// Names all cells of a comparison, and those that one side alone has.
    pub fn of(found: &Comparison<'_>) -> Self {
        let lost = found.lost.iter().chain(&found.again).map(|lost| lost.cell);
        let pairs = found.pairs.iter().map(|pair| pair.cell);
        let cells = pairs.chain(lost).chain(found.added.iter().copied());
        let cells: Vec<&Cell> = cells.collect();
        let names = Column::joined("cell", &subject(cells.clone()), " ");
        let keys = cells.iter().map(|cell| cell.key());
        Self(keys.zip(names.texts().iter().cloned()).collect())
    }

    /// Returns a cell's name.
    pub fn name(&self, cell: &Cell) -> &str {
        self.0.get(&cell.key()).map_or("", String::as_str)
    }
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
