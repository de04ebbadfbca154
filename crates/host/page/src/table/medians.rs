// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of tables of medians: the columns that distinguish cells, and the units.

use plan::Info;
use results::{Cell, Results, keys};

use crate::Column;
use crate::scale::Scale;

/// The unit of each cell's values.
pub struct Units<'r>(Vec<&'r str>);

impl<'r> Units<'r> {
    /// Determines the units of `cells`. `first` is one of the runs to which they belong.
    pub fn of_cells(
        cells: impl Iterator<Item = &'r Cell>,
        first: &'r Results,
        scale: Scale,
    ) -> Self {
        Self(
            cells
                .map(|cell| scale.unit_of_cells(first, &[cell]))
                .collect(),
        )
    }

    /// Returns the unit that all cells share, if there is one.
    pub fn common_unit(&self) -> &'r str {
        match self.0.first() {
            Some(unit) if self.unit_column().is_none() => unit,
            _ => "the unit of the cell",
        }
    }

    /// Returns the unit of each cell, if they differ.
    pub fn unit_column(&self) -> Option<Column> {
        let units = self.0.iter().map(|unit| (*unit).to_owned());
        let differ = self.0.iter().any(|unit| *unit != self.0[0]);
        differ.then(|| Column::words("unit", units.collect()))
    }
}

/// Returns the columns that distinguish `cells`.
pub fn distinguishing_columns(cells: Vec<&Cell>) -> Vec<Column> {
    let mut columns = Vec::new();
    for key in keys() {
        // The user chooses neither what Linux decides itself nor the limit of a poll that does not exist.
        let decided = |cell: &Cell| Info::find(key).is_none_or(|info| info.applies(&cell.what));
        let word = |cell: &&Cell| cell.word(key).filter(|_| decided(cell)).unwrap_or_default();
        let texts: Vec<String> = cells.iter().map(word).collect();
        let is_wait = key == "wait" && !texts.iter().all(String::is_empty);
        // A dimension that only some cells have does not distinguish these cells.
        let mut values = texts.iter().filter(|text| !text.is_empty());
        let first = values.next();
        if values.any(|text| Some(text) != first) || is_wait {
            columns.push(Column::words(key.trim_end_matches("-us"), texts));
        }
    }
    columns
}
