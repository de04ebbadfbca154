// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `cost`: executes each path, and counts its cost.
//!
//! The guest takes every path repeatedly between two marks (crate `cost`, `guest-kernel-shim/trials/src/cost.rs`). A
//! plugin of the emulator records what each CPU executes between the marks (`crates/host/recorder`). This module does
//! the counting: [`trace`] reads the record, [`visit`] finds the stays at EL2, [`tally`] counts events, and [`costs`]
//! combines the counts.

mod options;

pub use options::CostArgs;

mod alike;
mod baseline;
mod cache_misses;
mod card;
pub mod costs;
mod cycle_card;
mod cycles;
mod document;
mod gate;
mod history;
mod instruction_kind;
mod numbers;
mod parts;
pub mod recorder;
mod requests;
mod scale;
mod show;
mod simulator;
mod tally;
mod tarmac;
pub mod trace;
pub mod visit;

pub use scale::sample;

use anyhow::Result;
use cost::Path;

use baseline::Against;
use costs::{Costs, Mode};
use providing::toolchain;
use recorder::Bench;
use running::board::{Board, EmulatedMachine};
use shell::failure::bad_input;
use shell::output::Output;
use shell::places;
use shell::terminal::say;

/// File name, in `target/`, of the page with the charts of `--scale`.
const SCALE_PAGE: &str = "cost-scale.html";
/// The note added to an error that prevents a baseline from being written.
const CUT: &str = "not everything was counted, so that no baseline is written";

/// Runs `cargo xtask cost`.
pub fn cost(args: &CostArgs) -> Result<()> {
    if args.page {
        return history::write_document();
    }
    if let EmulatedMachine::Gem5(_) = Board::load(&args.board)?.machine {
        return cycle_card::cost(args);
    }
    if args.cpu.is_some() || args.gem5.is_some() {
        bad_input!(
            "--cpu, --gem5: instructions are the same on every model; use --board gem5 for cycles"
        );
    }
    let base = args.compare.as_ref().map(|file| match file {
        Some(file) => history::read_baseline(file),
        None => history::read_baseline(&history::newest::<Costs>(&args.board)?),
    });
    let base = base.transpose()?;
    args.format.claim()?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    let bench = Bench::new(&args.board, &args.limits)?;
    let mut costs = costs_without_counts(&bench, &args.board);
    let measured = count_requested(args, &bench, &mut costs);
    let against = base.as_ref().map(|base| Against::new(base, &costs));
    if !costs.paths.is_empty() {
        let against = against.as_ref().filter(|_| measured.is_ok());
        let document = show::document(&costs, against);
        args.format
            .show_with(&document, || results::json::text(&costs))?;
    }
    measured.map_err(|error| note_no_baseline(error, args))?;
    if args.scale {
        let page = places::target().join(SCALE_PAGE);
        Output::claim("--scale", &page)?.write(&scale::page(&costs.scale))?;
        say!("");
        say!("charts: {}", places::shown(&page));
        scale::fail_on_growth(&costs.scale)?;
    }
    if let Some(copy) = copy {
        copy.write(&serde_json::to_string_pretty(&costs)?)?;
    }
    let judged = against.map_or(Ok(()), |against| against.fail_on_growth());
    if let Some(label) = &args.save {
        say!(
            "kept as {}",
            history::save_baseline(costs, &args.board, label)?
        );
    }
    judged
}

/// If a baseline was requested, adds to `error` the note that none is written.
fn note_no_baseline(error: anyhow::Error, args: &CostArgs) -> anyhow::Error {
    match args.save {
        Some(_) => error.context(CUT),
        None => error,
    }
}

/// Returns costs that have no counts yet.
fn costs_without_counts(bench: &Bench, board: &str) -> Costs {
    Costs {
        schema: costs::SCHEMA,
        board: board.into(),
        emulator: bench.emulator.shown(),
        rustc: toolchain::rustc_version().unwrap_or_default(),
        ..Costs::default()
    }
}

/// Counts the requested costs. Even after an error, `costs` has everything counted so far.
fn count_requested(args: &CostArgs, bench: &Bench, costs: &mut Costs) -> Result<()> {
    let floors = Bench::with_floors(&args.board, &args.limits)?;
    count_all_paths(bench, &floors, &args.board, costs)?;
    if args.scale {
        let most = Board::load(&args.board)?.cpus.max;
        scale::measure(bench, &args.board, most, &mut costs.scale)?;
    }
    Ok(())
}

/// Counts everything except `--scale`. Even after an error, `costs` has everything counted so far.
fn count_all_paths(bench: &Bench, floors: &Bench, board: &str, costs: &mut Costs) -> Result<()> {
    let is_version2 = Board::load(board)?.machine.has_gicv2();
    for mode in Mode::ALL {
        // With a GICv2 there is no direct delivery.
        if is_version2 && mode == Mode::Direct {
            continue;
        }
        let measured = bench.record(mode, recorder::CPUS, recorder::ALL_PATHS)?;
        let mut tested = None;
        if mode == Mode::Inject {
            costs.numbers.extend(numbers::bytes_per_vcpu(&measured)?);
            let recorded = floors.record(mode, recorder::CPUS, recorder::ALL_PATHS)?;
            alike::compare_traces(&measured.trace, &recorded.trace, mode)?;
            tested = Some(recorded);
        }
        for &path in Path::ALL {
            let of_tests = tested.as_ref().filter(|_| path.is_floor());
            let recorded = of_tests.unwrap_or(&measured);
            costs
                .paths
                .push(match why_path_skipped(&recorded.console, path) {
                    Some(why) => costs::skipped_row(path, mode, why),
                    None => costs::count_row(&recorded.trace, path, mode)?,
                });
        }
    }
    costs.numbers.extend(numbers::image_sizes(bench)?);
    costs.numbers.extend(numbers::boot_instructions(bench)?);
    costs
        .numbers
        .extend(numbers::median_round_trips(board, &bench.limits)?);
    Ok(())
}

/// Returns the reason why the guest did not take `path`, if the guest printed one on its `console`.
fn why_path_skipped(console: &str, path: Path) -> Option<&str> {
    let start = format!("cost: {}: skipped: ", path.name());
    let mut lines = console.lines();
    lines.find_map(|line| line.strip_prefix(&start))
}
