// SPDX-License-Identifier: MIT OR Apache-2.0

// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]
//! The table of hypervisors (`run --under all`). The table compares one guest on the bare machine, under Rouse, and
//! under other hypervisors.
//!
//! [`boots`] lists the boots, [`numbers`] extracts the table's numbers, and [`document`] writes `docs/hypervisors.md`.
//! The document's numbers are stored next to it. A test checks the document against these stored numbers, and new
//! numbers are compared with them.

mod options;

pub use options::{Table, of_run};

mod boots;
mod document;
mod numbers;

use std::fs;

use anyhow::{Result, bail};
use plan::{Under, Word};
use providing::bao::Bao;
use results::Results;
use results::merge::Run;

use numbers::Numbers;
use reporting::report;
use running::boot::Show;
use running::job::Job;
use running::options::LimitArgs;
use running::verdict::Failure;
use running::{run, session};
use shell::failure::bad_input;
use shell::folder::Folder;
use shell::output::Output;
use shell::places;
use shell::terminal::{self, note, print_document, print_lines, say, step};

/// The document, and the file with its numbers.
const DOCUMENT: &str = "docs/hypervisors.md";
const NUMBERS: &str = "docs/hypervisors.json";
/// The file whose first table is a copy of the first table in [`DOCUMENT`].
const README: &str = "README.md";
/// Numbers that differ from the stored numbers by at most this fraction are not reported. Versions of one hypervisor
/// differ by less.
const NEAR: f64 = 0.10;

/// Measures the table.
pub fn hypervisors(args: &Table) -> Result<()> {
    let unders = match args.unders.as_slice() {
        [] => &available_hypervisors(args)[..],
        some => some,
    };
    // Check all jobs before the first one runs.
    let jobs = boots::boot_jobs(unders, args)?;
    if let Some(format) = &args.list {
        format.claim()?;
        return run::list(jobs.iter().map(|(_, job)| job), format);
    }
    let mut folder = Folder::claim(args.out.as_deref(), "hypervisors")?;
    let (all, failures) = run_jobs(&jobs, &folder)?;
    let numbers = Numbers::of_results(&all);
    print_document(&document::terminal_document(&numbers), terminal::width());
    if let Ok(kept) = Numbers::read_file(&places::inside(NUMBERS)) {
        print_lines(numbers.list_differences(&kept, NEAR));
    }
    folder.write("results.json", &all.to_json()?);
    folder.write("results.csv", &results::csv(&all)?);
    folder.write("hypervisors.json", &numbers.to_json()?);
    let run = Run {
        label: folder.name(),
        results: all,
        commands: vec!["cargo xtask run --under all".into()],
    };
    folder.write(report::PAGE, &page::results_page(None, &[run]));
    let closed = match failures.is_empty() {
        true => folder.close(None),
        false => folder.give_up("not every hypervisor is in it"),
    };
    say!("results: {}", closed.place);
    check_failures(&failures)?;
    closed.complete()?;
    if args.save {
        let numbers = match unders.len() < Under::ALL.len() {
            true => Numbers::read_file(&places::inside(NUMBERS))?.replace_columns(numbers, unders),
            false => numbers,
        };
        Output::claim("--save", &places::inside(NUMBERS))?.write(&numbers.to_json()?)?;
        write_document(&numbers)?;
        say!("kept in {DOCUMENT} and as the first table of {README}");
    }
    Ok(())
}

/// Returns all hypervisors that can be provided. Bao is included only if the user names a checkout of Bao, because no
/// package registry has it.
fn available_hypervisors(args: &Table) -> Vec<Under> {
    let mut all = Under::ALL.to_vec();
    if let Err(why) = Bao::source(args.bao.as_deref()) {
        note!("left out: {why:#}");
        all.retain(|under| *under != Under::Bao);
    }
    all
}

/// Measures the cells on the bare machine and under Rouse, and returns the cells that differ from the stored numbers.
/// Other hypervisors are left out, because their figures depend on their versions.
pub fn measure_changed_cells(limits: &LimitArgs) -> Result<Option<String>> {
    let args = Table {
        limits: *limits,
        ..Table::default()
    };
    let jobs = boots::boot_jobs(&[Under::None, Under::Rouse], &args)?;
    let folder = Folder::claim(None, "publish-hypervisors")?;
    let (all, failures) = run_jobs(&jobs, &folder)?;
    check_failures(&failures)?;
    folder.close(None).complete()?;
    let kept = Numbers::read_file(&places::inside(NUMBERS))?;
    let others = Numbers::of_results(&all).changed_cells(&kept);
    Ok((!others.is_empty()).then(|| {
        format!(
            "{NUMBERS}: {}: cargo xtask dev publish hypervisors",
            others.join(", ")
        )
    }))
}

/// Runs all jobs. Returns the joined results and the failures of the jobs. The cells of other jobs must not be lost if
/// a job fails.
fn run_jobs(jobs: &[(&'static str, Job)], folder: &Folder) -> Result<(Results, Vec<Failure>)> {
    let (mut all, mut failures) = (Results::default(), Vec::new());
    for (number, (name, job)) in (1..).zip(jobs) {
        step!("hypervisors: part {number} of {}, {name}", jobs.len());
        let inner = Folder::claim(Some(&folder.inside(name)), &job.board().name)?;
        let session = match session::run(job, inner, Show::Dumps) {
            Ok(session) => session,
            Err(error) if shell::failure::is_bad_input(&error) && jobs.len() > 1 => {
                note!("{error:#}");
                for &under in &job.unders {
                    all.lack(under, &format!("{error:#}"));
                }
                failures.push(Failure::lacking(&error));
                continue;
            }
            Err(error) => return Err(error),
        };
        add_results(&mut all, session.results);
        let ends_all = session.failure.as_ref().is_some_and(Failure::ends_all);
        failures.extend(session.failure);
        if ends_all {
            break;
        }
    }
    Ok((all, failures))
}

/// Adds the results of another job, which was measured with the same emulator and the same images.
fn add_results(all: &mut Results, more: Results) {
    if all.unit.is_empty() {
        let missing = std::mem::take(&mut all.missing);
        let incomplete = all.incomplete;
        *all = more;
        all.missing.splice(0..0, missing);
        all.incomplete |= incomplete;
        return;
    }
    all.machine.below.extend(more.machine.below);
    all.cells.extend(more.cells);
    all.incomplete |= more.incomplete;
    all.missing.extend(more.missing);
    all.damaged.extend(more.damaged);
    all.problems.extend(more.problems);
    all.notes.extend(more.notes);
}

/// Returns an error for the first failure, if there is any.
fn check_failures(failures: &[Failure]) -> Result<()> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    if failures.iter().all(Failure::is_bad_input) {
        bad_input!("{}", first.told());
    }
    bail!("{}", first.told());
}

/// Writes the documents again from the stored numbers.
pub fn rewrite_documents() -> Result<()> {
    write_document(&Numbers::read_file(&places::inside(NUMBERS))?)
}

fn write_document(numbers: &Numbers) -> Result<()> {
    let page = places::inside(DOCUMENT);
    let text = document::page(numbers, &fs::read_to_string(&page)?);
    Output::claim("--save", &page)?.write(&text)?;
    let readme = places::inside(README);
    let text = with_first_table(
        &fs::read_to_string(&readme)?,
        &document::medians_table(numbers),
    );
    Output::claim("--save", &readme)?.write(&text)
}

/// Returns `text` with its first table replaced by `table`.
fn with_first_table(text: &str, table: &str) -> String {
    let is_row = |line: &&str| line.starts_with('|');
    let before = text.split_inclusive('\n').take_while(|line| !is_row(line));
    let after = text
        .split_inclusive('\n')
        .skip_while(|line| !is_row(line))
        .skip_while(is_row);
    before.chain([table]).chain(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Numbers {
        Numbers::read_file(&places::inside(NUMBERS)).unwrap()
    }

    #[test]
    fn the_page_is_what_the_numbers_make_of_it() {
        let page = fs::read_to_string(places::inside(DOCUMENT)).unwrap();
        assert!(
            page == document::page(&committed(), &page),
            "{DOCUMENT} does not agree with {NUMBERS}; run `cargo xtask dev publish --page`"
        );
    }

    #[test]
    fn the_readme_begins_with_its_table() {
        let readme = fs::read_to_string(places::inside(README)).unwrap();
        let wanted = with_first_table(&readme, &document::medians_table(&committed()));
        assert!(
            readme == wanted,
            "{README}: run `cargo xtask dev publish --page`"
        );
    }

    #[test]
    fn every_hypervisor_and_every_row_is_in_it() {
        let numbers = committed();
        for &under in Under::ALL {
            // Nothing traps on the bare machine and under Bao, and not all other hypervisors poll.
            let least = match under {
                Under::None | Under::Bao => 7,
                _ => 10,
            };
            assert!(numbers.column_numbers(under).count() >= least, "{under}");
        }
    }
}
