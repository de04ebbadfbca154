// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a command in a form that does not depend on the medium: lines and tables, in order.
//!
//! | form | module | for |
//! |---|---|---|
//! | terminal | here | people; no wider than the terminal |
//! | Markdown | [`markdown`](Document::markdown) | an issue, a page |
//! | mail | [`mail`](Document::mail) | a mailing list: plain text of 76 columns |
//! | CSV | [`csv`](Document::csv) | a spreadsheet; the tables alone |
//! | HTML | [`html`](Document::html) | a page |
//! | JSON | [`json`](Document::json) | programs |
//!
//! All forms have every line and every number. The marks, notes and units that qualify a number are lines as well, so
//! no form loses them.

mod data;
mod html;
mod mail;
mod markdown;

use foreign::Quoted;

use crate::Column;
use crate::grid::{self, Paint};

/// Maximum number of characters in a line. Our own lines are shorter; a line with a quoted text may be cut.
const LINE: usize = 2000;

/// The meaning of `±`.
const ROUNDING: &str = "±: half the width of the histogram's bucket that holds the value; of a difference, of both together.";

/// A line, or a table.
#[derive(Debug)]
pub enum Block {
    /// A line. A line is empty between paragraphs, and begins with two spaces if it is part of a list.
    Line(String),
    /// A table.
    Table(Vec<Column>),
}

/// Lines and tables.
#[derive(Debug, Default)]
pub struct Document(Vec<Block>);

impl Document {
    /// Adds a line.
    pub fn push(&mut self, line: String) {
        self.0.push(Block::Line(line));
    }

    /// Adds a table.
    pub fn table(&mut self, columns: Vec<Column>) {
        self.0.push(Block::Table(columns));
    }

    /// Removes the last block.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Appends `further`.
    pub fn append(&mut self, further: Self) {
        self.0.extend(further.0);
    }

    /// Returns the document's lines and tables, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.0
    }

    /// Adds a line that explains the sign `±`, if any number has it. Adds it only once.
    pub fn explain_rounding(&mut self) {
        let has = |text: &str| text.contains('±');
        let rounded = self.0.iter().any(|block| match block {
            Block::Line(line) => has(line),
            Block::Table(columns) => columns
                .iter()
                .any(|column| column.texts().iter().any(|text| has(text))),
        });
        let told = |block: &Block| matches!(block, Block::Line(line) if line == ROUNDING);
        if rounded && !self.0.iter().any(told) {
            self.push(ROUNDING.into());
        }
    }

    /// Returns the document in a form that is safe to print. A quoted name, note or reason may come from outside, so it
    /// must not control a terminal or begin a line.
    fn clean_for_people(&self) -> Self {
        let blocks = self.0.iter().map(|block| match block {
            Block::Line(line) => Block::Line(Quoted::up_to(LINE, line).to_string()),
            Block::Table(columns) => {
                Block::Table(columns.iter().map(Column::clean_for_people).collect())
            }
        });
        Self(blocks.collect())
    }

    /// Returns the document as lines for a terminal, with tables at most `width` wide.
    pub fn terminal(&self, width: Option<usize>) -> Vec<String> {
        self.painted(width, &grid::plain)
    }

    /// Like [`Self::terminal`], with colours.
    pub fn painted(&self, width: Option<usize>, paint: Paint<'_>) -> Vec<String> {
        let shown = self.clean_for_people();
        let lines = shown.0.iter().flat_map(|block| match block {
            Block::Line(line) => grid::wrapped(line, width),
            Block::Table(columns) => grid::fitted_lines(columns.iter().collect(), width, paint),
        });
        lines.collect()
    }
}

impl Extend<String> for Document {
    fn extend<I: IntoIterator<Item = String>>(&mut self, lines: I) {
        self.0.extend(lines.into_iter().map(Block::Line));
    }
}

impl From<Vec<String>> for Document {
    fn from(lines: Vec<String>) -> Self {
        let mut document = Self::default();
        document.extend(lines);
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    fn document() -> Document {
        let mut results = results();
        results.notes.push("a <b> | *c*".into());
        let cell = results.cells.iter_mut().find(|cell| cell.stats.is_some());
        cell.unwrap().not_modelled = vec!["wfe_halts".into()];
        results.fidelity.insert("wfe_halts".into(), false.into());
        crate::table::output_document(&results)
    }

    #[test]
    fn markdown_has_the_star_and_its_reason() {
        let text = document().markdown("cargo xtask run");
        for part in [
            "| wfi\\* |",
            "| ---: |",
            "\\* depends on what this machine does not model: wfe_halts",
            "note: a &lt;b> \\| \\*c\\*",
            "```\ncargo xtask run\n```",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_mail_has_them_too() {
        let text = document().mail(&["cargo", "xtask", "run"].map(String::from));
        for part in [
            "wfi*",
            "* depends on what",
            "$ cargo xtask run",
            "instructions per round trip",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.is_ascii());
    }

    #[test]
    fn data_have_all_texts() {
        let document = document();
        let json = document.json("cargo xtask run");
        assert_eq!(json["schema"], 1);
        let blocks = json["blocks"].as_array().unwrap();
        let columns = blocks.iter().find_map(|block| block["columns"].as_array());
        let titles: Vec<_> = columns
            .unwrap()
            .iter()
            .map(|column| &column["title"])
            .collect();
        assert!(
            titles.contains(&&serde_json::Value::from("max")),
            "{titles:?}"
        );
        let csv = document.csv().unwrap();
        assert!(
            csv.starts_with("wait,") && csv.lines().count() == 2,
            "{csv}"
        );
        let mut large = Document::default();
        large.table(vec![Column::numbers("", "n", vec!["1,198,080".into()])]);
        assert_eq!(large.csv().unwrap(), "n\n1198080\n");
    }
}
