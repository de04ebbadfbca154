// SPDX-License-Identifier: MIT OR Apache-2.0
//! A document as a part of a page.

use maud::{Markup, html};

use super::{Block, Document};
use crate::appendix::table;

/// Consecutive lines of the same kind, or a table.
enum Part<'d> {
    Paragraph(&'d str),
    List(Vec<&'d str>),
    Table(&'d [crate::Column]),
}

impl Document {
    /// Returns the document's lines as paragraphs and lists, and its tables.
    #[must_use]
    pub fn html(&self) -> Markup {
        let shown = self.clean_for_people();
        let mut parts: Vec<Part<'_>> = Vec::new();
        for block in shown.blocks() {
            match (block, parts.last_mut()) {
                (Block::Line(line), Some(Part::List(lines))) if line.starts_with("  ") => {
                    lines.push(line.trim());
                }
                (Block::Line(line), _) if line.starts_with("  ") => {
                    parts.push(Part::List(vec![line.trim()]));
                }
                (Block::Line(line), _) if line.is_empty() => {}
                (Block::Line(line), _) => parts.push(Part::Paragraph(line)),
                (Block::Table(columns), _) => parts.push(Part::Table(columns)),
            }
        }
        html! {
            @for part in &parts {
                @match part {
                    Part::Paragraph(line) => p { (line) },
                    Part::List(lines) => ul { @for line in lines { li { (line) } } },
                    Part::Table(columns) => (table(columns)),
                }
            }
        }
    }
}
