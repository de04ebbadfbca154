// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `cost`: what each path costs, counted from its execution.
//!
//! The guest takes every path again and again between two marks (crate `cost`,
//! `guest-kernel-shim/trials/cost.rs`); a plugin of the emulator writes down what
//! each CPU executes there (`crates/recorder`). What is made of it is made here:
//! [`trace`] reads it, [`visit`] finds the stays at EL2, [`tally`] counts,
//! [`costs`] puts it together.

pub mod costs;
mod document;
mod gate;
mod history;
mod numbers;
pub mod recorder;
mod scale;
mod show;
mod tally;
pub mod trace;
pub mod visit;
mod word;

pub use scale::sample;

use anyhow::{Context, Result, bail};
use cost::Path;

use crate::board::Board;
use crate::cli::CostArgs;
use crate::failure::bad_input;
use crate::output::Output;
use crate::terminal::say;
use crate::{places, toolchain};
use costs::{Costs, Mode};
use recorder::{Bench, Recorded};

/// The charts of `--scale`, below `target/`.
const SCALE_PAGE: &str = "cost-scale.html";
/// Why no baseline is made.
const CUT: &str = "not everything was counted, so that no baseline is written";

/// Does what `cargo xtask cost` promises.
pub fn cost(args: &CostArgs) -> Result<()> {
    if args.page {
        return history::write_document();
    }
    let base = args.compare.as_ref().map(|file| match file {
        Some(file) => history::read(file),
        None => history::read(&history::newest()?),
    });
    let base = base.transpose()?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    let bench = Bench::new(&args.board, &args.limits)?;
    let mut costs = begun(&bench, &args.board);
    let measured = measure(&bench, &args.board, &mut costs);
    if !costs.paths.is_empty() {
        say!("{}", show::table(&costs).join("\n"));
    }
    measured.context(CUT)?;
    if args.scale {
        let most = Board::load(&args.board)?.cpus.max;
        let measured = scale::measure(&bench, &args.board, most, &mut costs.scale);
        say!("\n{}", scale::table(&costs.scale).join("\n"));
        measured.context(CUT)?;
        let page = places::target().join(SCALE_PAGE);
        Output::claim("--scale", &page)?.write(&scale::page(&costs.scale))?;
        say!("charts: {}", places::shown(&page));
        scale::judge(&costs.scale)?;
    }
    if let Some(copy) = copy {
        copy.write(&serde_json::to_string_pretty(&costs)?)?;
    }
    let judged = base.map_or(Ok(()), |base| compare(&base, &costs));
    if let Some(label) = &args.save {
        say!("kept as {}", history::save(costs, label)?);
    }
    judged
}

/// Tells what is not as in `base`; fails if something grew too much, or if that can't
/// be told because another compiler made the code.
fn compare(base: &Costs, costs: &Costs) -> Result<()> {
    let (changes, gone) = gate::changes(base, costs);
    say!("\nagainst `{}` ({}):", base.label, base.rustc);
    if changes.is_empty() && gone.is_empty() {
        say!("the same");
    }
    changes.iter().for_each(|change| say!("{}", change.text()));
    gone.iter()
        .for_each(|name| say!("{name}: no longer counted"));
    // The difference may be the compiler's, and may hide one of the tree's.
    if let Some(other) = gate::other_compiler(base, &costs.rustc) {
        bad_input!("can't be judged: {other}");
    }
    let grown: Vec<String> = changes
        .iter()
        .filter(|change| change.fails())
        .map(|change| change.text())
        .collect();
    if !grown.is_empty() || !gone.is_empty() {
        let all: Vec<String> = grown.into_iter().chain(gone).collect();
        bail!("more than before: {}", all.join("; "));
    }
    Ok(())
}

/// Why the newest baseline that was kept is no measure of what is built here, if so.
pub fn lacks_baseline() -> Option<String> {
    let base = history::read(&history::newest().ok()?).ok()?;
    gate::other_compiler(&base, &toolchain::rustc_version()?)
}

/// Costs with nothing counted yet.
fn begun(bench: &Bench, board: &str) -> Costs {
    Costs {
        schema: costs::SCHEMA,
        board: board.into(),
        emulator: bench.emulator.shown(),
        rustc: toolchain::rustc_version().unwrap_or_default(),
        ..Costs::default()
    }
}

/// Counts everything. What was counted before an error is kept all the same.
fn measure(bench: &Bench, board: &str, costs: &mut Costs) -> Result<()> {
    for mode in Mode::ALL {
        let recorded = bench.record(mode, recorder::CPUS, recorder::ALL_PATHS)?;
        if mode == Mode::Inject {
            costs.numbers.extend(numbers::per_vcpu(&recorded)?);
        }
        for &path in Path::ALL {
            costs.paths.push(match why_not(&recorded, path) {
                Some(why) => costs::skipped(path, mode, why),
                None => costs::row(&recorded.trace, path, mode)?,
            });
        }
    }
    costs.numbers.extend(numbers::sizes(bench)?);
    costs.numbers.extend(numbers::boot(bench)?);
    costs
        .numbers
        .extend(numbers::round_trips(board, &bench.limits)?);
    Ok(())
}

/// Why the guest did not take `path`, if it did not.
fn why_not(recorded: &Recorded, path: Path) -> Option<&str> {
    let start = format!("cost: {}: skipped: ", path.name());
    let mut lines = recorded.console.lines();
    lines.find_map(|line| line.strip_prefix(&start))
}
