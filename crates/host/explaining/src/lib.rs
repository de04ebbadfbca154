// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `explain`: shows a median sample along its path, function by function, or the difference between two such
//! samples.
//!
//! A plugin of the emulator keeps the blocks that each sample consists of (crate `critical`). [`code`] finds their
//! functions, and [`calls`] finds the callers of these functions. [`walk`] divides a sample into steps, and [`events`]
//! counts its exits and interrupts. [`cells`] makes the explanation, [`explanation`] defines the format of its file,
//! and [`difference`] compares two explanations. [`table`], [`difference_table`], [`page`] and [`viewers`] show them.

#![forbid(unsafe_code)]

mod calls;
mod cells;
mod code;
mod difference;
mod difference_table;
mod events;
pub mod explanation;
mod kallsyms;
mod page;
#[cfg(test)]
mod samples;
mod step;
mod table;
mod viewers;
mod walk;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::{Arg, Args, Command};
use running::options::RunArgs;
use running::run;
use running::session::Session;
use shell::failure::bad_input;
use shell::output::Output;
use shell::partial_files;
use shell::terminal::{note, say};
use shell::timings;

use explanation::{Explained, FILE};
use table::Questions;

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// An earlier explanation to show, or two to compare
    #[arg(value_name = "A B", num_args = 0..=2)]
    pub runs: Vec<PathBuf>,
    /// The options of `run`.
    #[command(flatten)]
    pub run: RunArgs,
    /// The N longest functions, or the N largest changes
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20", conflicts_with_all = ["function", "until"])]
    pub top: Option<NonZeroUsize>,
    /// The cost of function NAME in all samples
    #[arg(long, value_name = "NAME", conflicts_with = "until")]
    pub function: Option<String>,
    /// The path up to this function
    #[arg(long, value_name = "FUNCTION")]
    pub until: Option<String>,
}

/// Makes the argument `runs` conflict with all options of `run` except those for the form of the output.
pub fn conflict_with_measuring(runs: Arg) -> Arg {
    let of_run = RunArgs::augment_args(Command::new(""));
    let ids = of_run.get_arguments().map(|arg| arg.get_id().clone());
    let measure = ids.filter(|id| !["format", "wide"].contains(&id.as_str()));
    show_in_short_help(runs.conflicts_with_all(measure))
}

/// Makes the short help show an option that only `explain` has.
pub fn show_in_short_help(arg: Arg) -> Arg {
    arg.hide_short_help(false)
}

/// Makes the help text of `json` name the file that `explain` copies.
pub fn name_copied_file(json: Arg) -> Arg {
    const SHORT: &str = "Write a copy of explain.json to FILE; - is standard output";
    json.help(SHORT).long_help(format!(
        "{SHORT}, and the table then goes to standard error"
    ))
}

/// Runs `cargo xtask explain`.
pub fn explain(args: &ExplainArgs) -> Result<()> {
    let begun = Instant::now();
    let questions = Questions {
        top: args.top.map(NonZeroUsize::get),
        function: args.function.as_deref(),
        until: args.until.as_deref(),
    };
    args.run.format.claim()?;
    match &args.runs[..] {
        [] => {
            let done = measure_and_explain(args, &questions);
            if args.run.timings {
                timings::tell(begun);
            }
            done
        }
        earlier => {
            let read = earlier.iter().map(|run| Explained::read(run));
            let mut read: Vec<Explained> = read.collect::<Result<_>>()?;
            let document = match read.as_mut_slice() {
                [a, b] if !questions.are_of_samples() => {
                    let apart = a.align(b);
                    let mut document = difference_table::differing_words(&apart);
                    document.append(difference_table::differences([a, b], questions.top)?);
                    document
                }
                all => table::document(&all.iter().collect::<Vec<_>>(), &questions)?,
            };
            args.run.format.show_document(&document)
        }
    }
}

/// Measures, and explains the samples that were measured.
fn measure_and_explain(args: &ExplainArgs, questions: &Questions<'_>) -> Result<()> {
    if args.run.list || args.run.bisect.is_some() {
        bad_input!("explain: --list and --bisect are options of `run`; leave them out");
    }
    let copy = Output::claim_any("--json", args.run.json.as_ref())?;
    let sessions = run::traced(&args.run)?;
    let told = save_and_show(args, questions, &sessions, copy);
    // If a boot failed, this is also why there is no answer, so the boot's error is returned.
    match (sessions.into_iter().try_for_each(run::ended), told) {
        (Ok(()), told) => told,
        (failed, Ok(())) => failed,
        (failed, Err(error)) => {
            note!("{error:#}");
            failed
        }
    }
}

/// Saves and shows the explanations of all sessions.
fn save_and_show(
    args: &ExplainArgs,
    questions: &Questions<'_>,
    sessions: &[Session],
    copy: Option<Output>,
) -> Result<()> {
    let guests = args.run.job.load.given.guest.as_deref().unwrap_or_default();
    let guests: Vec<&str> = match sessions.len() {
        1 => vec![guests],
        _ => guests.split(',').collect(),
    };
    let explained = sessions.iter().zip(&guests);
    let explained: Vec<Explained> = explained
        .map(|(session, guest)| Explained::of(session, guest))
        .collect::<Result<_>>()?;
    for (session, explained) in sessions.iter().zip(&explained) {
        save_files(session, explained);
        say!("explanation: {}/{}", session.place, page::FILE);
    }
    if args.run.repeat.is_some_and(|repeat| repeat > 1) {
        note!("the first repetition is explained; results.json has all");
    }
    // `run` refuses --json for two kernels, because each has its own file. A run without cells leaves an older file as
    // it is.
    if let (Some(copy), [one]) = (copy, &explained[..])
        && !one.cells.is_empty()
    {
        copy.write(&(serde_json::to_string_pretty(one)? + "\n"))?;
    }
    let all: Vec<&Explained> = explained.iter().collect();
    let document = match &all[..] {
        &[a, b] if !questions.are_of_samples() => {
            let document = difference_table::differences([a, b], questions.top)?;
            if let Some(last) = sessions.last() {
                let place = Path::new(&last.place).join(page::DIFFERENCE);
                write_or_note(&place, &page::difference_page([a, b], &document));
                say!("difference: {}", place.display());
            }
            document
        }
        all => table::document(all, questions)?,
    };
    say!("");
    args.run.format.show_document(&document)
}

/// Writes the files of an explanation into the folder of its run.
fn save_files(session: &Session, explained: &Explained) {
    let folder = Path::new(&session.place);
    let mut files = vec![
        (FILE, serde_json::to_string(explained).unwrap_or_default()),
        (page::FILE, page::page(explained)),
    ];
    files.extend(viewers::files(explained));
    for (name, text) in files {
        write_or_note(&folder.join(name), &text);
    }
}

fn write_or_note(place: &Path, text: &str) {
    if let Err(error) = partial_files::write(place, text.as_bytes(), 0o644) {
        note!("{} can't be written: {error}", place.display());
    }
}
