// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stored runs, and their comparison with new runs. Each run is one command `cargo xtask run`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use results::{Cell, Results, Stats, json};

use providing::apt;
use providing::gem5;
use running::board::{Board, EmulatedMachine, names};
use running::job::Job;
use running::kvm::kernel;
use running::options::JobArgs;
use shell::failure::{BadInput, bad_input};
use shell::output::Output;
use shell::terminal::note;
use shell::{files, mistake, places};

/// The folder of the results.
pub const FOLDER: &str = "results";
/// Maximum number of differing cells to name.
const NAMED: usize = 3;

/// Runs in addition to the boards' runs, each with its options.
const RUNS: [(&str, &str); 2] = [
    (
        "linux",
        "--board virt --guest debian --under none,rouse --workload linux-pipe,linux-timer,linux-idle --trap none,wfi",
    ),
    (
        "neighbour",
        "--board virt --workload pingpong --neighbour work --slice-us 0 --wait wfi,spin,poll-wfi --trap none,wfi \
         --deliver inject --poll-limit-us 50 --gap-us 20,200,1000",
    ),
];

/// A stored run: a board's default matrix, or one of [`RUNS`].
#[derive(Debug)]
pub struct Run {
    pub name: String,
    options: String,
}

/// The options of `run` that select the measurement.
#[derive(Parser)]
struct Words {
    #[command(flatten)]
    job: JobArgs,
}

impl Run {
    /// Returns the run called `name`.
    pub fn find_by_name(name: &str) -> Result<Self> {
        let other = RUNS.iter().find(|(other, _)| *other == name);
        let options = match other {
            Some((_, options)) => (*options).to_owned(),
            None => {
                let boards = names()?;
                if !boards.iter().any(|board| board == name) {
                    let runs = RUNS.map(|(name, _)| name).join(", ");
                    bad_input!(
                        "there is no `{name}` to publish; use {}, {runs} or hypervisors",
                        boards.join(", ")
                    );
                }
                let board = Board::load(name)?;
                let quick = matches!(board.machine, EmulatedMachine::Gem5(_));
                format!("--board {name}{}", if quick { " --quick" } else { "" })
            }
        };
        Ok(Self {
            name: name.into(),
            options,
        })
    }

    /// Whether the run is the default matrix of a board.
    pub fn is_board(&self) -> bool {
        RUNS.iter().all(|(name, _)| *name != self.name)
    }

    /// Returns the command that repeats the measurement.
    pub fn command(&self) -> String {
        format!("cargo xtask run {}", self.options)
    }

    pub fn job(&self) -> Result<Job> {
        let words = ["run"].into_iter().chain(self.options.split(' '));
        let words = Words::try_parse_from(words).with_context(|| self.command())?;
        Job::new(&words.job)
    }
}

/// Returns the names of the runs that this computer can make.
pub fn runs_for_this_host() -> Result<Vec<String>> {
    let mut here = Vec::new();
    for name in names()? {
        match Board::load(&name)?.machine {
            EmulatedMachine::Gem5(_) if gem5::find(None).is_err() => {
                note!("left out: {name}: there is no gem5 here (docs/cost.md); its results stay");
            }
            _ => here.push(name),
        }
    }
    for (name, options) in RUNS {
        let has_kernel = || kernel::provided().is_some() || apt::usable();
        match options.contains("--guest debian") && !has_kernel() {
            true => {
                note!("left out: {name}: Debian's kernel can't be fetched here; its results stay")
            }
            false => here.push(name.into()),
        }
    }
    Ok(here)
}

/// Stores the results of a run.
pub fn store_results(name: &str, mut results: Results) -> Result<()> {
    for cell in &mut results.cells {
        cell.histograms.clear();
    }
    let path = places::inside(FOLDER);
    files::make_folder(&path)?;
    let file = path.join(format!("{name}.json"));
    Output::claim("results", &file)?.write(&json::text(&results)?)
}

/// Returns the stored results, by name.
pub fn stored_results() -> Result<Vec<(String, Results)>> {
    let folder = places::inside(FOLDER);
    let entries = fs::read_dir(&folder);
    let entries = entries.with_context(|| {
        format!(
            "{} can't be read; run `cargo xtask dev publish`",
            places::shown(&folder)
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
            let shown = places::shown(file);
            let results = Results::read_json(&text, mistake::of_json).map_err(|why| {
                BadInput::error(format!("{shown}: {why}; run `cargo xtask dev publish`"))
            })?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            Ok((name.into_owned(), results))
        })
        .collect()
}

/// Describes the cells of run `name` that differ from `kept`, or have another order.
pub fn changed_cells(name: &str, kept: &Results, now: &Results) -> Option<String> {
    let figures = |results: &Results| -> BTreeMap<Vec<String>, (String, String)> {
        let cells = results.cells.iter();
        cells
            .map(|cell| (cell.key(), (cell.title(), compared_figures(cell))))
            .collect()
    };
    let order = |results: &Results| results.cells.iter().map(Cell::key).collect::<Vec<_>>();
    let moved = order(kept) != order(now);
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
    if titles.is_empty() {
        return moved.then(|| {
            format!("{FOLDER}/{name}.json: its cells have another order than this tree gives them: cargo xtask dev publish {name}")
        });
    }
    let more = match titles.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = titles[..titles.len().min(NAMED)].join(", ");
    Some(format!(
        "{FOLDER}/{name}.json: {named}{more} are not what this tree measures: cargo xtask dev publish {name}"
    ))
}

/// Returns the figures of a cell that are compared. The number of samples and their extremes are not among them,
/// because in one of thousands of samples, the emulator may switch to another CPU at a different instruction than
/// before (docs/results.md), and that sample then has no path.
fn compared_figures(cell: &Cell) -> String {
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
