// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of an experiment.

use serde::Serialize;

pub use super::chart::{Chart, Curve, Series};
pub use super::claim::Claim;
pub use super::figures::{ByBoot, Constant};
pub use super::verdict::{Test, Way};
use page::document::Document;
use page::grid::Column;

/// The tables, charts, claims and notes in which an experiment results.
#[derive(Serialize)]
pub struct Outcome {
    pub tables: Vec<Table>,
    /// Charts for the page. Charts are not shown on the terminal.
    pub charts: Vec<Chart>,
    pub claims: Vec<Claim>,
    /// Facts that the reader needs to understand the figures.
    pub notes: Vec<String>,
}

/// A table in the form of the source's table.
#[derive(Serialize)]
pub struct Table {
    /// Heading: the measured quantity.
    pub title: String,
    /// Titles of the columns, except for the column of row names.
    pub columns: Vec<String>,
    /// The table's rows: a name, and a text for each column.
    pub rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&column| column.into()).collect(),
            rows: Vec::new(),
        }
    }

    pub fn add_row(&mut self, name: &str, texts: Vec<String>) {
        debug_assert_eq!(texts.len(), self.columns.len());
        self.rows.push((name.into(), texts));
    }

    fn columns(&self) -> Vec<Column> {
        let names = self.rows.iter().map(|(name, _)| name.clone()).collect();
        let column = |(n, title): (usize, &String)| {
            let texts = self.rows.iter().map(|(_, texts)| texts[n].clone());
            Column::numbers("", title, texts.collect())
        };
        let numbers = self.columns.iter().enumerate().map(column);
        std::iter::once(Column::words("", names))
            .chain(numbers)
            .collect()
    }
}

impl Outcome {
    /// Creates an outcome with one table and one chart. The chart draws the columns `series` as bars, for every row.
    pub fn of_table(
        table: Table,
        (title, unit): (&str, &str),
        series: &[Series],
        claims: Vec<Claim>,
        notes: &[&str],
    ) -> Self {
        let chart = Chart::bars(&table, title, unit, series, |_| true);
        Self {
            tables: vec![table],
            charts: vec![chart],
            claims,
            notes: notes.iter().map(|&note| note.into()).collect(),
        }
    }

    /// Adds the outcome's figures to `document`.
    pub fn show(&self, document: &mut Document) {
        for table in &self.tables {
            document.extend([String::new(), table.title.clone()]);
            document.table(table.columns());
        }
        document.push(String::new());
        document.extend(self.notes.iter().map(|note| format!("note: {note}")));
    }
}

/// Formats a change in per cent, with its sign.
pub fn percent_change(before: f64, after: f64) -> String {
    format!("{:+.0} %", 100.0 * (after / before - 1.0))
}

/// Formats a number without decimals.
pub fn without_decimals(value: f64) -> String {
    page::thousands(value)
}

/// Formats a number with two decimals.
pub fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_rows_in_columns() {
        let mut table = Table::new("seconds", &["before", "after"]);
        table.add_row("pipe", vec!["30".into(), "15".into()]);
        let text = page::grid::lines(&table.columns()).join("\n");
        assert!(text.contains("before  after") && text.contains("pipe      30     15"));
        assert_eq!(percent_change(30.0, 15.0), "-50 %");
    }
}
