// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `results`: what this version measures on each board, kept in the repository with a page.
//!
//! `results/BOARD.json` is a run's results.json without histograms, `docs/measured.md` the tables of all of them. So a reader sees what
//! to expect before building anything, and `compare results/virt.json RUN` tells whether a machine measures the same.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use page::table;
use results::{Results, json};

use crate::board::{Board, Machine, names};
use crate::boot::Show;
use crate::cli::{JobArgs, LimitArgs};
use crate::failure::bad_input;
use crate::folder::Folder;
use crate::gem5;
use crate::job::Job;
use crate::output::Output;
use crate::terminal::{note, say};
use crate::{files, places, session};

/// Where the results are kept.
const FOLDER: &str = "results";
/// The page of all of them.
const PAGE: &str = "docs/measured.md";
/// Options of `results`.
#[derive(Args, Debug)]
pub struct ResultsArgs {
    /// Some boards only [default: all whose emulator is here]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub board: Vec<String>,
    /// Only write docs/measured.md anew from what is kept in results/
    #[arg(long)]
    pub page: bool,
    /// How long each run may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Does what `cargo xtask results` promises.
pub fn results(args: &ResultsArgs) -> Result<()> {
    if args.page {
        return write_page();
    }
    // Everything is checked before anything runs.
    let jobs: Vec<Job> = chosen(&args.board)?
        .iter()
        .map(|board| Ok(job(board)?.within(&args.limits)))
        .collect::<Result<_>>()?;
    let folder = Folder::claim(None, "results")?;
    for (number, job) in (1..).zip(&jobs) {
        let name = &job.board().name;
        note!("results: board {number} of {}, {name}", jobs.len());
        let inner = Folder::claim(Some(&folder.inside(name)), name)?;
        let session = session::run(job, inner, Show::Dumps)?;
        if let Some(failure) = session.failure {
            anyhow::bail!(
                "board {name}: {}; what was kept before stays",
                failure.told()
            );
        }
        keep(name, session.results)?;
        say!("kept: {FOLDER}/{name}.json");
    }
    folder.close(None).complete()?;
    write_page()
}

/// The boards that are asked for; else all that can be measured here.
fn chosen(asked: &[String]) -> Result<Vec<String>> {
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    let mut here = Vec::new();
    for name in names()? {
        match Board::load(&name)?.machine {
            Machine::Gem5(_) if gem5::find(None).is_err() => {
                note!(
                    "left out: {name}: there is no gem5 here (docs/gem5.md); what is kept of it stays"
                );
            }
            _ => here.push(name),
        }
    }
    Ok(here)
}

/// What is measured on `board`: the default matrix, as `command` says.
fn job(board: &str) -> Result<Job> {
    let mut args = JobArgs::on(board);
    args.load.plan.quick = matches!(Board::load(board)?.machine, Machine::Gem5(_));
    Job::new(&args)
}

/// The command that measures the same on `board`.
fn command(board: &str) -> String {
    let quick = if board == "gem5" { " --quick" } else { "" };
    format!("cargo xtask run --board {board}{quick}")
}

fn keep(board: &str, mut results: Results) -> Result<()> {
    for cell in &mut results.cells {
        cell.histograms.clear();
    }
    let path = places::inside(FOLDER);
    files::make_folder(&path)?;
    let file = path.join(format!("{board}.json"));
    Output::claim("results", &file)?.write(&json::text(&results)?)
}

/// What is kept, by board.
fn kept(folder: &Path) -> Result<Vec<(String, Results)>> {
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| {
        format!(
            "{} can't be read; run `cargo xtask results`",
            places::shown(folder)
        )
    })?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file)?;
            let results: Results =
                serde_json::from_str(&text).with_context(|| places::shown(file))?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            Ok((name.into_owned(), results))
        })
        .collect()
}

fn write_page() -> Result<()> {
    let kept = kept(&places::inside(FOLDER))?;
    if kept.is_empty() {
        bad_input!("{FOLDER}/ has no results; run `cargo xtask results`");
    }
    Output::claim("results", &places::inside(PAGE))?.write(&page(&kept))?;
    say!("page: {PAGE}");
    Ok(())
}

/// The page: a section for each board.
fn page(kept: &[(String, Results)]) -> String {
    let mut text = String::from(HEAD);
    for (board, results) in kept {
        let build = results
            .build
            .as_ref()
            .map(results::Build::tree)
            .unwrap_or_default();
        text += &format!(
            "\n## {board}\n\n{}, {build}; [{board}.json](../{FOLDER}/{board}.json)\n\n",
            results.tool
        );
        text += &table::document(results).markdown(&command(board));
    }
    text
}

const HEAD: &str = "\
# What was measured on each board

`cargo xtask results` measures every board whose emulator is on the computer, and keeps what comes out in `results/`, one file for each board: a run's
[results.json](results.md) without histograms. This page is made of these files (`cargo xtask results --page`), so it has the version and the commit that
measured. Instructions and cycles repeat: the command below a section gives the same numbers with the same compiler and emulator.
`cargo xtask compare results/virt.json RUN` says what is otherwise. A star and its reason mean the same as in any [table](glossary.md).

No board here is hardware: each is QEMU or gem5 with the properties that `cargo xtask boards` lists. [Bring-up](bring-up.md) says how to measure the machine itself.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_what_is_kept() {
        let kept = kept(&places::inside(FOLDER)).unwrap();
        let written = fs::read_to_string(places::inside(PAGE)).unwrap();
        assert!(written == page(&kept), "run `cargo xtask results --page`");
        for (board, results) in &kept {
            assert_eq!(&results.board, board);
            assert!(!results.incomplete && results.damaged.is_empty(), "{board}");
            assert!(
                results.build.as_ref().is_some_and(|build| !build.dirty),
                "{board}"
            );
            assert!(
                job(board).is_ok() && results.cells.iter().any(|cell| cell.stats.is_some()),
                "{board}"
            );
        }
    }
}
