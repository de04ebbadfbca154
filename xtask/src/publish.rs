// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `publish`: what this version measures on each board, kept in the repository with the documents that have it.
//!
//! `results/BOARD.json` is a run's results.json without histograms, `docs/measured.md` the tables of all of them, and the README has some rows of
//! `virt`'s. So a reader sees what to expect before building anything, and `compare results/virt.json RUN` tells whether a
//! machine measures the same. `--check` measures again, and fails where one figure is another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use page::table;
use results::{Cell, Results, Stats, json};

use crate::board::{Board, Machine, names};
use crate::boot::Show;
use crate::cli::{JobArgs, LimitArgs};
use crate::failure::bad_input;
use crate::folder::Folder;
use crate::gem5;
use crate::job::Job;
use crate::output::Output;
use crate::terminal::{note, say};
use crate::{files, hypervisors, places, session};

/// Where the results are kept.
const FOLDER: &str = "results";
/// The page of all of them.
const PAGE: &str = "docs/measured.md";
/// The document that has some rows, between these lines, and the board whose they are.
const README: &str = "README.md";
const BEGIN: &str = "<!-- cargo xtask publish: some rows of results/virt.json -->\n";
const END: &str = "<!-- until here -->\n";
const SHOWN: &str = "virt";
/// Those rows, by their titles.
const ROWS: [&str; 5] = [
    "pingpong one wfi none inject ipi lse",
    "pingpong one wfi none direct ipi lse",
    "pingpong one wfi wfi inject ipi lse",
    "pingpong one poll-wfi none inject ipi lse",
    "pingpong one poll-wfi none inject elide lse",
];
/// Columns of a terminal that they are for.
const WIDTH: usize = 120;
/// Cells that are named where more than these differ.
const NAMED: usize = 3;

/// Options of `publish`.
#[derive(Args, Debug)]
pub struct PublishArgs {
    /// Some boards only [default: all whose emulator is here; with --check, virt]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub board: Vec<String>,
    /// Only write the documents anew from what is kept in results/
    #[arg(long)]
    pub page: bool,
    /// Write nothing: fail if a figure of results/, of the table of hypervisors (under none and rouse) or of a document is
    /// not the one that this tree measures
    #[arg(long, conflicts_with = "page")]
    pub check: bool,
    /// How long each run may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Does what `cargo xtask publish` promises.
pub fn publish(args: &PublishArgs) -> Result<()> {
    if args.page {
        return write_pages();
    }
    if args.check {
        return check(args);
    }
    let keep_one = |name: &str, results| {
        keep(name, results)?;
        say!("kept: {FOLDER}/{name}.json");
        Ok(())
    };
    measure(&chosen(&args.board)?, &args.limits, keep_one)?;
    write_pages()
}

/// Measures boards, one after another, and gives the results of each to `take`.
fn measure(
    boards: &[String],
    limits: &LimitArgs,
    mut take: impl FnMut(&str, Results) -> Result<()>,
) -> Result<()> {
    // Everything is checked before anything runs.
    let jobs: Vec<Job> = boards
        .iter()
        .map(|board| Ok(job(board)?.within(limits)))
        .collect::<Result<_>>()?;
    let folder = Folder::claim(None, "publish")?;
    for (number, job) in (1..).zip(&jobs) {
        let name = &job.board().name;
        note!("publish: board {number} of {}, {name}", jobs.len());
        let inner = Folder::claim(Some(&folder.inside(name)), name)?;
        let session = session::run(job, inner, Show::Dumps)?;
        if let Some(failure) = session.failure {
            bail!(
                "board {name}: {}; what was kept before stays",
                failure.told()
            );
        }
        take(name, session.results)?;
    }
    folder.close(None).complete()?;
    Ok(())
}

/// Fails unless all that is kept, and each document, has the figures that this tree measures.
fn check(args: &PublishArgs) -> Result<()> {
    let boards = match args.board.as_slice() {
        [] => vec![SHOWN.to_owned()],
        asked => asked.to_vec(),
    };
    let all = kept(&places::inside(FOLDER))?;
    let mut wrong = Vec::new();
    measure(&boards, &args.limits, |name, results| {
        let Some((_, kept)) = all.iter().find(|(board, _)| board == name) else {
            bad_input!(
                "{FOLDER}/{name}.json is not there; run `cargo xtask publish --board {name}`"
            );
        };
        wrong.extend(others(name, kept, &results));
        Ok(())
    })?;
    wrong.extend(hypervisors::others(&args.limits)?);
    wrong.extend(
        documents(&all)?
            .into_iter()
            .filter(|(_, is, wanted)| is != wanted)
            .map(|(path, ..)| {
                format!("{path} has other figures than {FOLDER}/: cargo xtask publish --page")
            }),
    );
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    say!(
        "every figure is as this tree measures it: {}",
        boards.join(", ")
    );
    Ok(())
}

/// The cells of a board that are not as `kept`.
fn others(board: &str, kept: &Results, now: &Results) -> Option<String> {
    let figures = |results: &Results| -> BTreeMap<Vec<String>, (String, String)> {
        let cells = results.cells.iter();
        cells
            .map(|cell| (cell.key(), (cell.title(), figures(cell))))
            .collect()
    };
    let (kept, now) = (figures(kept), figures(now));
    let keys = kept
        .keys()
        .chain(now.keys().filter(|key| !kept.contains_key(*key)));
    let other =
        keys.filter(|key| kept.get(*key).map(|cell| &cell.1) != now.get(*key).map(|cell| &cell.1));
    let titles: Vec<&str> = other
        .filter_map(|key| kept.get(key).or(now.get(key)))
        .map(|(title, _)| title.as_str())
        .collect();
    (!titles.is_empty()).then(|| {
        let more = match titles.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = titles[..titles.len().min(NAMED)].join(", ");
        format!("{FOLDER}/{board}.json: {named}{more} are not what this tree measures: cargo xtask publish --board {board}")
    })
}

/// The figures of a cell that are compared. Not how many samples there are, nor extremes of all: in one of thousands the
/// emulator may change CPUs in another place (docs/results.md), and no path is known of that one.
fn figures(cell: &Cell) -> String {
    let of_all = |stats: &Stats| [stats.p50, stats.p90, stats.p99];
    let of_clear = |stats: &Stats| [stats.min, stats.p50, stats.p90, stats.p99, stats.max];
    let critical = cell.critical.as_ref();
    let exits = cell.exits.keys();
    let exits = exits.map(|cause| format!("{cause} {:.2}", cell.exits_per_sample(cause)));
    format!(
        "{:?} {:?} {:?} {:?} {}",
        cell.stats.as_ref().map(of_all),
        critical.map(|critical| of_clear(&critical.path)),
        critical.map(|critical| of_clear(&critical.net)),
        exits.collect::<Vec<_>>(),
        cell.iterations,
    )
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

/// The default matrix on `board`, as `command` measures it.
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

/// The results that are kept, by board.
fn kept(folder: &Path) -> Result<Vec<(String, Results)>> {
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| {
        format!(
            "{} can't be read; run `cargo xtask publish`",
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

fn write_pages() -> Result<()> {
    let kept = kept(&places::inside(FOLDER))?;
    if kept.is_empty() {
        bad_input!("{FOLDER}/ has no results; run `cargo xtask publish`");
    }
    for (path, _, wanted) in documents(&kept)? {
        Output::claim("publish", &places::inside(path))?.write(&wanted)?;
        say!("page: {path}");
    }
    Ok(())
}

/// Each document that has figures of what is kept: its path, what it is, and what it has to be.
fn documents(kept: &[(String, Results)]) -> Result<[(&'static str, String, String); 2]> {
    let read =
        |path: &str| fs::read_to_string(places::inside(path)).with_context(|| path.to_owned());
    let (measured, readme) = (read(PAGE)?, read(README)?);
    let rows = readme
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = rows else {
        bad_input!("{README} has not the lines {BEGIN:?} and {END:?}; put them where its rows are");
    };
    let Some((_, shown)) = kept.iter().find(|(board, _)| board == SHOWN) else {
        bad_input!("{FOLDER}/{SHOWN}.json is not there; run `cargo xtask publish --board {SHOWN}`");
    };
    let wanted = format!("{before}{BEGIN}```\n{}```\n{END}{after}", sample(shown));
    Ok([(PAGE, measured, page(kept)), (README, readme, wanted)])
}

/// The machine and some rows of a run, as a terminal has them.
fn sample(results: &Results) -> String {
    let mut some = results.clone();
    some.cells
        .retain(|cell| ROWS.contains(&&*cell.title()) && cell.what.host_poll_us == 0);
    let lines = table::lines(&some, Some(WIDTH));
    let table = lines.split(String::is_empty).nth(1).unwrap_or_default();
    let shown = lines.iter().take(1).map(String::as_str).chain([""]);
    shown
        .chain(table.iter().map(String::as_str))
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
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

`cargo xtask publish` measures every board whose emulator is on the computer, and keeps what comes out in `results/`, one file for each board: a run's
[results.json](results.md) without histograms. This page is made of these files (`cargo xtask publish --page`), so it has the version and the commit that
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
        for (path, is, wanted) in documents(&kept).unwrap() {
            assert!(is == wanted, "{path}: run `cargo xtask publish --page`");
        }
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

    #[test]
    fn one_instruction_more_in_one_cell_is_another_figure() {
        let kept = kept(&places::inside(FOLDER)).unwrap();
        let (_, kept) = kept.iter().find(|(board, _)| board == SHOWN).unwrap();
        assert_eq!(others(SHOWN, kept, kept), None);
        let mut now = kept.clone();
        now.cells[7].stats.as_mut().unwrap().p99 += 1;
        let told = others(SHOWN, kept, &now).unwrap();
        assert!(told.contains(&kept.cells[7].title()), "{told}");
        now.cells.remove(0);
        let told = others(SHOWN, kept, &now).unwrap();
        assert!(told.contains(&kept.cells[0].title()), "{told}");
    }
}
