// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a comparison's cells.

use page::cell_names::CellNames;
use page::grid::Column;
use page::table::distinguishing_columns;
use results::Cell;
use results::compare::Comparison;

/// Names all cells of a comparison, including those that only one side has.
pub fn names_in_comparison(found: &Comparison<'_>) -> CellNames {
    let lost = found.lost.iter().chain(&found.again).map(|lost| lost.cell);
    let pairs = found.pairs.iter().map(|pair| pair.cell);
    CellNames::for_cells(pairs.chain(lost).chain(found.added.iter().copied()))
}

/// Returns the columns that distinguish cells, always including the workload.
pub fn subject_columns(cells: Vec<&Cell>) -> Vec<Column> {
    let workloads = cells.iter().map(|cell| cell.table_key()).collect();
    let others = distinguishing_columns(cells)
        .into_iter()
        .filter(|column| column.title() != "workload");
    let mut columns = vec![Column::words("workload", workloads)];
    columns.extend(others);
    columns
}
