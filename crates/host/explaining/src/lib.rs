// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `explain`: one median sample along its path, function by function, and the difference of two.
//!
//! A plugin of the emulator keeps the blocks that each sample consists of (crate `critical`). [`code`] finds their
//! functions, [`walk`] makes steps of a sample, [`explanation`] has the form of the file, [`difference`] compares two,
//! [`table`], [`page`] and [`viewers`] show them.

#![forbid(unsafe_code)]

mod code;
mod difference;
pub mod explanation;
mod kallsyms;
mod page;
#[cfg(test)]
mod samples;
mod table;
mod viewers;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use running::options::RunArgs;
use running::run;
use running::session::Session;
use shell::failure::bad_input;
use shell::output::Output;
use shell::partial_files;
use shell::terminal::{note, say};

use explanation::{Explained, FILE};
use table::Questions;

/// Options that have no effect on earlier explanations.
const OF_MEASURING: [&str; 8] = [
    "board", "guest", "workload", "under", "out", "save", "json", "function",
];

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Two earlier explanations, A and B: folders, saved runs or files; none to measure
    #[arg(value_name = "A B", num_args = 0..=2, conflicts_with_all = OF_MEASURING)]
    pub runs: Vec<PathBuf>,
    /// The options of `run`.
    #[command(flatten)]
    pub run: RunArgs,
    /// The N longest functions, and not the sample in order
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20")]
    pub top: Option<usize>,
    /// Of each cell, what this function costs over all samples: minimum, median, maximum
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// The path up to the first instruction of this function
    #[arg(long, value_name = "FUNCTION")]
    pub until: Option<String>,
}

/// Runs `cargo xtask explain`.
pub fn explain(args: &ExplainArgs) -> Result<()> {
    let questions = Questions {
        top: args.top,
        function: args.function.as_deref(),
        until: args.until.as_deref(),
    };
    args.run.format.claim()?;
    match &args.runs[..] {
        [] => measured(args, &questions),
        [a, b] => {
            let both = [Explained::read(a)?, Explained::read(b)?];
            let document = table::differences([&both[0], &both[1]], args.top)?;
            args.run.format.show_document(&document)
        }
        _ => bad_input!("explain: one run has no difference; name two, or none to measure"),
    }
}

/// Measures, and explains what was measured.
fn measured(args: &ExplainArgs, questions: &Questions<'_>) -> Result<()> {
    if args.run.list || args.run.bisect.is_some() {
        bad_input!("explain: --list and --bisect are options of `run`; leave them out");
    }
    let copy = Output::claim_any("--json", args.run.json.as_ref())?;
    let sessions = run::traced(&args.run)?;
    let explained: Vec<Explained> = sessions.iter().map(Explained::of).collect::<Result<_>>()?;
    for (session, explained) in sessions.iter().zip(&explained) {
        keep(session, explained);
    }
    let all: Vec<&Explained> = explained.iter().collect();
    let document = match &all[..] {
        &[a, b] if questions.are_none() => table::differences([a, b], args.top)?,
        all => table::document(all, questions)?,
    };
    if let Some(copy) = copy {
        // Two kernels have no single file, which `run` refuses.
        let text = explained.first().map(serde_json::to_string_pretty);
        copy.write(&(text.transpose()?.unwrap_or_default() + "\n"))?;
    }
    args.run.format.show_document(&document)?;
    for session in &sessions {
        say!("");
        say!("explanation: {}/{}", session.place, page::FILE);
    }
    sessions.into_iter().try_for_each(run::ended)
}

/// Writes the files of an explanation into the folder of its run.
fn keep(session: &Session, explained: &Explained) {
    let folder = Path::new(&session.place);
    let mut files = vec![
        (FILE, serde_json::to_string(explained).unwrap_or_default()),
        (page::FILE, page::page(explained)),
    ];
    files.extend(viewers::files(explained));
    for (name, text) in files {
        let place = folder.join(name);
        if let Err(error) = partial_files::write(&place, text.as_bytes(), 0o644) {
            note!("{} can't be written: {error}", place.display());
        }
    }
}
