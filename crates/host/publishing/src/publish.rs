// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `publish`: stores this version's results in the repository, with the documents that show them.
//!
//! `results/NAME.json` is the results.json of a [run](runs), without histograms. The [documents](mod@documents) contain
//! tables and rows of these results. The stored results show a reader what to expect before building anything, and
//! `compare results/virt.json RUN` shows whether a machine measures the same. `--check` measures again, and fails if a
//! figure differs.

mod documents;
mod runs;

use anyhow::{Result, bail};
use clap::Args;
use results::Results;

use documents::all_documents;
use hypervisors::Table;
use running::boot::Show;
use running::options::LimitArgs;
use running::session;
use runs::{FOLDER, Run, changed_cells, store_results, stored_results};
use shell::failure::bad_input;
use shell::folder::Folder;
use shell::output::Output;
use shell::places;
use shell::terminal::{say, step};

/// The board that the README shows.
const SHOWN: &str = "virt";
/// The name of the table of hypervisors, which the crate `hypervisors` measures and writes.
const HYPERVISORS: &str = "hypervisors";

/// Options of `publish`.
#[derive(Args, Debug)]
pub struct PublishArgs {
    /// Boards, `linux`, `neighbour` or `hypervisors` [default: all that can be measured here; with --check, virt and hypervisors]
    #[arg(value_name = "WHAT")]
    pub what: Vec<String>,
    /// Only rewrite the documents from the figures in results/
    #[arg(long, conflicts_with = "what")]
    pub page: bool,
    /// Write nothing; fail if a figure in results/, in the table of hypervisors (under none and rouse) or in a document
    /// differs from the one that this tree measures
    #[arg(long, conflicts_with = "page")]
    pub check: bool,
    /// How long each run may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Runs `cargo xtask dev publish`.
pub fn publish(args: &PublishArgs) -> Result<()> {
    if args.page {
        return write_pages();
    }
    let (names, hypervisors) = chosen_runs(args)?;
    if args.check {
        return check_published(&names, hypervisors, &args.limits);
    }
    measure_runs(&names, &args.limits, |run, results| {
        store_results(&run.name, results)?;
        say!("kept: {FOLDER}/{}.json", run.name);
        Ok(())
    })?;
    if hypervisors {
        hypervisors::hypervisors(&Table {
            save: true,
            limits: args.limits,
            ..Table::default()
        })?;
    }
    write_pages()
}

/// Returns the requested runs, or else the runs that can be made here, and whether the table of hypervisors is among
/// them.
fn chosen_runs(args: &PublishArgs) -> Result<(Vec<String>, bool)> {
    let mut names = args.what.clone();
    if names.is_empty() {
        names = match args.check {
            true => vec![SHOWN.into()],
            false => runs::runs_for_this_host()?,
        };
        names.push(HYPERVISORS.into());
    }
    let all = names.len();
    names.retain(|name| name != HYPERVISORS);
    let hypervisors = names.len() < all;
    Ok((names, hypervisors))
}

/// Makes runs, one after another, and passes the results of each to `take`.
fn measure_runs(
    names: &[String],
    limits: &LimitArgs,
    mut take: impl FnMut(&Run, Results) -> Result<()>,
) -> Result<()> {
    // Check every name before the first run starts.
    let mut jobs = Vec::new();
    for name in names {
        let run = Run::find_by_name(name)?;
        let job = run.job()?.within(limits);
        jobs.push((run, job));
    }
    let folder = Folder::claim(None, "publish")?;
    for (number, (run, job)) in (1..).zip(&jobs) {
        let name = &run.name;
        step!("publish: {number} of {}, {name}", jobs.len());
        let inner = Folder::claim(Some(&folder.inside(name)), name)?;
        let session = session::run(job, inner, Show::Dumps)?;
        if let Some(failure) = session.failure {
            bail!("{name}: {}; what was kept before stays", failure.told());
        }
        take(run, session.results)?;
    }
    folder.close(None).complete()?;
    Ok(())
}

/// Fails unless the stored results and each document have the figures that a measurement of this tree gives.
fn check_published(names: &[String], hypervisors: bool, limits: &LimitArgs) -> Result<()> {
    let all = stored_results()?;
    let mut wrong = Vec::new();
    measure_runs(names, limits, |run, results| {
        let Some((_, kept)) = all.iter().find(|(name, _)| *name == run.name) else {
            let name = &run.name;
            bad_input!("{FOLDER}/{name}.json is not there; run `cargo xtask dev publish {name}`");
        };
        wrong.extend(changed_cells(&run.name, kept, &results));
        Ok(())
    })?;
    if hypervisors {
        wrong.extend(hypervisors::measure_changed_cells(limits)?);
    }
    wrong.extend(
        all_documents(&all)?
            .into_iter()
            .filter(|document| document.is != document.wanted)
            .map(|document| {
                let path = document.path;
                format!("{path} has other figures than {FOLDER}/: cargo xtask dev publish --page")
            }),
    );
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    let more = hypervisors.then_some(HYPERVISORS);
    let names: Vec<&str> = names.iter().map(String::as_str).chain(more).collect();
    say!(
        "every figure is as this tree measures it: {}",
        names.join(", ")
    );
    Ok(())
}

fn write_pages() -> Result<()> {
    let kept = stored_results()?;
    if kept.is_empty() {
        bad_input!("{FOLDER}/ has no results; run `cargo xtask dev publish`");
    }
    for document in all_documents(&kept)? {
        let path = document.path;
        Output::claim("publish", &places::inside(path))?.write(&document.wanted)?;
        say!("page: {path}");
    }
    hypervisors::rewrite_documents()
}
