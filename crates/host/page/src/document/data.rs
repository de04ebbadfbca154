// SPDX-License-Identifier: MIT OR Apache-2.0
//! A document as JSON and as CSV, for commands that have no data format of their own.

use serde_json::{Value, json};

use super::{Block, Document};
use crate::{Column, grid};

/// Version of the object.
const SCHEMA: u32 = 1;

impl Document {
    /// Returns a JSON object with `schema`, `command` and `blocks`. Each block has either `line`, a text, or `columns`,
    /// a list of objects with `group`, `title` and `texts`. The texts are the rows' texts, as they are shown.
    #[must_use]
    pub fn json(&self, command: &str) -> Value {
        let blocks = self.blocks().iter().map(|block| match block {
            Block::Line(line) => json!({ "line": line }),
            Block::Table(columns) => {
                let columns = columns.iter().map(|column| {
                    json!({ "group": column.group(), "title": column.title(), "texts": column.texts() })
                });
                json!({ "columns": columns.collect::<Vec<_>>() })
            }
        });
        json!({ "schema": SCHEMA, "command": command, "blocks": blocks.collect::<Vec<_>>() })
    }

    /// Returns the tables as CSV (RFC 4180), with an empty line between tables.
    ///
    /// # Errors
    /// If a row can't be written to memory.
    pub fn csv(&self) -> csv::Result<String> {
        let mut texts = Vec::new();
        for block in self.blocks() {
            if let Block::Table(columns) = block {
                texts.push(table_csv(columns)?);
            }
        }
        Ok(texts.join("\n"))
    }
}

fn table_csv(columns: &[Column]) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(grid::full_name))?;
    for number in 0..grid::row_count(columns) {
        let texts = columns.iter().map(|column| {
            let text = column.texts().get(number).map_or("", String::as_str);
            match column.is_left() {
                true => foreign::cell(text),
                // A program can read the number only without its commas.
                false => text.replace(',', "").into(),
            }
        });
        writer.write_record(texts.map(|text| text.into_owned()))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
