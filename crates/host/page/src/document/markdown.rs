// SPDX-License-Identifier: MIT OR Apache-2.0
//! A document as GitHub's Markdown (GitHub Flavored Markdown Spec 0.29, 4.10, tables).

use super::{Block, Document};
use crate::Column;
use crate::grid;

impl Document {
    /// Returns the document as Markdown. `command` is the command that made the document.
    #[must_use]
    pub fn markdown(&self, command: &str) -> String {
        let mut text = String::new();
        let mut in_list = false;
        for block in self.clean_for_people().blocks() {
            match block {
                Block::Line(line) if line.starts_with("  ") => {
                    text += &format!("- {}\n", escape_markdown(line.trim()));
                    in_list = true;
                    continue;
                }
                _ if in_list => text.push('\n'),
                _ => {}
            }
            in_list = false;
            match block {
                Block::Line(line) if line.is_empty() => {}
                Block::Line(line) => text += &format!("{}\n\n", escape_markdown(line)),
                Block::Table(columns) => text += &markdown_table(columns),
            }
        }
        if in_list {
            text.push('\n');
        }
        text += &format!("```\n{command}\n```\n");
        text
    }
}

fn markdown_table(columns: &[Column]) -> String {
    let mut lines = vec![table_row(columns.iter().map(grid::full_name))];
    let rules = columns.iter().map(|column| match column.is_left() {
        true => "---".to_owned(),
        false => "---:".to_owned(),
    });
    lines.push(format!("| {} |", rules.collect::<Vec<_>>().join(" | ")));
    for number in 0..grid::row_count(columns) {
        let texts = columns.iter().map(|column| column.texts().get(number));
        lines.push(table_row(
            texts.map(|text| text.cloned().unwrap_or_default()),
        ));
    }
    lines.join("\n") + "\n\n"
}

fn table_row(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.map(|text| escape_markdown(&text)).collect();
    format!("| {} |", texts.join(" | "))
}

/// Escapes characters that have a meaning in Markdown. An underscore within a word has none, so it stays.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '*' | '|' | '`' | '\\' | '[' | '#' | '~' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}
