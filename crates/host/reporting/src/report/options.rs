// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

use crate::format::FormatArgs;

/// Options of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run folders, results.json files, saved runs (`--save NAME`), or captures of a console (lines with `@r1 `)
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// Where the report goes: FILE.html, - (standard output), or a folder, which also gets results.json and results.csv
    /// unless the report is made from them [default: the run folder if there is one INPUT, else target/reports/TIME]
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Watts of a CPU that runs, polls, waits in wfi or works at el2, with their source, in the form of the table
    /// `watts` in a board's file, for a model of the energy per wake-up (docs/results.md)
    #[arg(long, value_name = "FILE.toml")]
    pub watts: Option<PathBuf>,
    /// Also write each chart of the page to this folder, as a separate SVG file; no file there is replaced
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Title of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The form of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}
