// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--format`: the form of a command's output on standard output.
//!
//! In all forms but the terminal's, standard output has only the document. All other messages then go to standard
//! error.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use page::document::{Block, Document};
use page::{programs, screen, table};
use results::{Results, json};

use shell::command;
use shell::failure::bad_input;
use shell::terminal::{self, note};

/// A form of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines and tables for a terminal
    #[default]
    Table,
    /// GitHub's Markdown
    Md,
    /// The tables, or the cells, for a spreadsheet
    Csv,
    /// Data, in the form of results.json where there is one
    Json,
    /// Plain text of 76 columns, for a mailing list
    Mail,
}

/// Options of the output.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormatArgs {
    /// Form of standard output; every form except table has all columns
    #[arg(long, value_enum, value_name = "FORM", default_value = "table")]
    pub format: Format,
    /// Show all columns, including those for which a terminal has no room
    #[arg(long)]
    pub wide: bool,
}

impl FormatArgs {
    /// Whether to show every cell and every column. On a terminal, the default is to show only those that differ.
    pub fn is_whole(&self) -> bool {
        let people = matches!(self.format, Format::Table | Format::Md | Format::Mail);
        self.wide || !people
    }

    /// Reserves standard output for the document from now on.
    pub fn claim(&self) -> Result<()> {
        if self.format != Format::Table && !terminal::divert() {
            bad_input!("--format: standard output is that of another option; name a file there");
        }
        Ok(())
    }

    /// Shows results.
    pub fn show_results(&self, results: &Results) -> Result<()> {
        let screen = screen::document(results, screen::Rest::Elsewhere)
            .filter(|_| !self.wide && self.format == Format::Table);
        let Some(screen) = screen else {
            return self.show_or_data(&self.answer_and_tables(results), results);
        };
        let width = terminal::width().unwrap_or(screen::WIDTH);
        terminal::print_document(&screen, Some(width));
        Ok(())
    }

    /// Returns the answer for people, followed by the tables of all cells.
    pub fn answer_and_tables(&self, results: &Results) -> Document {
        let answer = match self.format {
            Format::Table | Format::Md | Format::Mail => {
                screen::document(results, screen::Rest::Below)
            }
            Format::Csv | Format::Json => None,
        };
        let has_answer = answer.is_some();
        let mut whole = answer.unwrap_or_default();
        if !whole.blocks().is_empty() {
            whole.push(String::new());
        }
        whole.append(table::output_document(results));
        if !has_answer {
            whole.append(programs::figures_document(results));
        }
        whole.explain_rounding();
        whole
    }

    /// Shows `document`, or `results` if the form is data.
    pub fn show_or_data(&self, document: &Document, results: &Results) -> Result<()> {
        match self.format {
            Format::Csv => {
                print_caveats(document);
                print_text(&results::csv(results)?)
            }
            _ => self.show_with(document, || json::text(results)),
        }
    }

    /// Shows `document`, or, if the form is JSON, the text that `json` returns.
    pub fn show_with(
        &self,
        document: &Document,
        json: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        match self.format {
            Format::Json => print_text(&json()?),
            _ => self.show_document(document),
        }
    }

    /// Shows `document`, in any form.
    pub fn show_document(&self, document: &Document) -> Result<()> {
        match self.format {
            Format::Table => {
                let width = terminal::width().filter(|_| !self.wide);
                terminal::print_document(document, width);
                Ok(())
            }
            Format::Md => print_text(&document.markdown(&command::this_command())),
            Format::Mail => print_text(&document.mail(&command::this_command_in_ascii())),
            Format::Csv => {
                print_caveats(document);
                print_text(&document.csv()?)
            }
            Format::Json => print_text(&json::text(&document.json(&command::this_command()))?),
        }
    }
}

/// Prints caveats about the numbers on standard error, because a spreadsheet has no place for them.
fn print_caveats(document: &Document) {
    for block in document.blocks() {
        if let Block::Line(line) = block {
            note!("{line}");
        }
    }
}

fn print_text(text: &str) -> Result<()> {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    let written = terminal::write(format!("{text}{line}").as_bytes());
    terminal::unless_reader_left(written).context("standard output can't be written")
}
