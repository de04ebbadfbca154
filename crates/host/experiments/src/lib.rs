// SPDX-License-Identifier: MIT OR Apache-2.0

// This crate is only for programs of this workspace, so a field whose name is clear needs no comment.
#![allow(missing_docs)]
//! The verb `experiment`: repeats measurements that authors of idle systems published, and shows the results in a table
//! that has the same form as the published one, with the published figures next to ours.
//!
//! An [`Experiment`] lists its boots ([`Boot`]), and converts their results to an [`Outcome`]: tables, and claims of
//! the source ([`claim::Claim`]). Each claim has a verdict on our numbers that is computed from all boots
//! ([`verdict`]). `docs/experiments.md` lists what each experiment can show.

mod options;

pub use options::ExperimentArgs;

mod boot;
mod chart;
mod claim;
mod clients;
mod event_stream;
mod figures;
mod forecast;
mod frames;
mod governors;
mod idle_poll;
mod ipistorm;
mod mostly_idle;
mod outcome;
mod page;
mod poll_limit;
mod posted;
mod psd;
mod report;
mod resched_ipis;
mod runs;
mod sample;
mod sched;
mod shim_vs_linux;
mod verdict;
mod where_to_poll;
mod who_pays;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use ::page::document::Document;
use anyhow::{Result, anyhow};
use results::Results;
use results::json;

use boot::{Boot, Brief, ONCE, PLACES, Repeat, SEEDS, TWELVE_SEEDS};
use outcome::Outcome;
use report::{Done, Failed, Report, Written};
use reporting::format::Format;
use running::board::{Board, EmulatedMachine};
use running::boot::Show;
use running::job::Job;
use running::options::Metric;
use running::session;
use runs::Runs;
pub use sample::page as sample;
use shell::command;
use shell::failure::bad_input;
use shell::folder::Folder;
use shell::output::Output;
use shell::side_by_side;
use shell::terminal::{note, say, step};

pub struct Experiment {
    name: &'static str,
    question: &'static str,
    /// The source of the figures next to ours.
    source: &'static str,
    boots: &'static [Boot],
    /// The metric of its figures; `None` if they can be compared in any unit of a board.
    metric: Option<Metric>,
    /// Draws the conclusions from its boots.
    conclude: fn(&Runs) -> Result<Outcome>,
    /// Which figures can be compared with the source's, and which can't.
    comparable: &'static str,
}

/// All experiments, in the order of the report.
const ALL: &[&Experiment] = &[
    &poll_limit::EXPERIMENT,
    &mostly_idle::EXPERIMENT,
    &sched::EXPERIMENT,
    &resched_ipis::EXPERIMENT,
    &ipistorm::EXPERIMENT,
    &clients::EXPERIMENT,
    &psd::EXPERIMENT,
    &idle_poll::EXPERIMENT,
    &governors::EXPERIMENT,
    &frames::EXPERIMENT,
    &where_to_poll::EXPERIMENT,
    &event_stream::EXPERIMENT,
    &shim_vs_linux::EXPERIMENT,
    &who_pays::EXPERIMENT,
];

/// Former names of experiments, with the current ones.
const RENAMED: [(&str, &str); 1] = [("who-polls", "where-to-poll")];

/// Returns a list of the names of all experiments.
pub fn names() -> String {
    let all = ALL.iter().chain(&posted::ALL);
    let names: Vec<&str> = all.map(|experiment| experiment.name).collect();
    names.join(", ")
}

/// Names of a report's files.
const PAGE: &str = "report.html";
const DATA: &str = "experiments.json";

/// Runs `cargo xtask experiment`.
pub fn run(args: &ExperimentArgs) -> Result<()> {
    let chosen = choose_experiments(
        &args.names,
        args.patches.is_some(),
        &Board::load(&args.board)?,
    )?;
    // All boots are checked before the first one runs.
    let jobs = chosen
        .iter()
        .map(|experiment| experiment.jobs(args))
        .collect::<Result<Vec<_>>>()?;
    let mut folder = Folder::claim(args.out.as_deref(), "experiment")?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    args.format.claim()?;
    for (experiment, jobs) in chosen.iter().zip(&jobs) {
        forecast::describe_judgeable(experiment, jobs)
            .iter()
            .for_each(|line| note!("{line}"));
    }
    let mut done = Done::default();
    for (number, (experiment, jobs)) in (1..).zip(chosen.iter().zip(jobs)) {
        let name = experiment.name;
        let title = format!("experiment {number} of {}, {name}", chosen.len());
        if done.add_report(name, experiment.report(jobs, args.jobs, &folder, &title)) {
            break;
        }
    }
    let written = Written::of(&done.reports);
    let data = json::text(&written)?;
    folder.write(DATA, &data);
    folder.write(PAGE, &page::html(&done.reports, &command::this_command()));
    let closed = match done.errors.is_empty() {
        true => folder.close(None),
        false => folder.give_up("not every experiment is complete"),
    };
    say!("");
    say!("{}", written.verdicts.summary_line());
    say!("report: {}/{PAGE}", closed.place);
    if args.format.format != Format::Table {
        let mut document = Document::from(vec![written.verdicts.summary_line()]);
        for report in &done.reports {
            report.show(&mut document);
        }
        args.format.show_with(&document, || json::text(&written))?;
    }
    // An incomplete report replaces an older file only if it has at least one experiment.
    if let Some(copy) = copy.filter(|_| !done.reports.is_empty()) {
        copy.write(&data)?;
    }
    done.require_all_reports(chosen.len(), &closed.place)?;
    closed.complete().map(drop)
}

/// Returns the experiments that `names` lists. `all` and `posted` select the experiments whose unit `board` has. `all`
/// includes posted patches only if the user `has_patches`.
fn choose_experiments(
    names: &[String],
    has_patches: bool,
    board: &Board,
) -> Result<Vec<&'static Experiment>> {
    let posted = || unmodified(measurable_on(&posted::ALL, board));
    if names.iter().any(|name| name == "all") {
        if !has_patches {
            for experiment in posted() {
                note!("{}: skipped, it needs --patches DIR", experiment.name);
            }
            return Ok(measurable_on(ALL, board));
        }
        return Ok([measurable_on(ALL, board), posted()].concat());
    }
    let mut chosen = Vec::new();
    for name in names {
        if name == "posted" {
            chosen.extend(posted());
            continue;
        }
        let renamed = RENAMED.iter().find(|(old, _)| old == name);
        let name = renamed.map_or(&**name, |(_, new)| new);
        let mut all = ALL.iter().chain(&posted::ALL);
        match all.find(|experiment| experiment.name == name) {
            Some(experiment) => chosen.push(*experiment),
            None => {
                bad_input!(
                    "there is no experiment `{name}`; use all, posted, {}",
                    self::names()
                );
            }
        }
    }
    Ok(chosen)
}

/// Leaves out the experiments that need a modified gem5, and prints their names.
fn unmodified(experiments: Vec<&'static Experiment>) -> Vec<&'static Experiment> {
    let (modified, unmodified): (Vec<_>, Vec<_>) = experiments
        .into_iter()
        .partition(|experiment| experiment.boots.iter().any(Boot::sets_parameters));
    for experiment in modified {
        note!(
            "{}: skipped, it needs a gem5 with boards/gem5/gem5.patch; name it",
            experiment.name
        );
    }
    unmodified
}

/// Selects the experiments whose unit `board` has, and prints the names of all other experiments.
fn measurable_on(experiments: &[&'static Experiment], board: &Board) -> Vec<&'static Experiment> {
    let can = |experiment: &&'static Experiment| {
        let mut metrics = board.metrics();
        experiment
            .metric
            .is_none_or(|metric| metrics.any(|other| other == metric))
    };
    let (those, others): (Vec<&'static Experiment>, Vec<&'static Experiment>) =
        experiments.iter().copied().partition(can);
    let others: Vec<&str> = others.iter().map(|experiment| experiment.name).collect();
    if !others.is_empty() {
        note!(
            "skipped, since board {} counts other units: {}",
            board.name,
            others.join(", ")
        );
    }
    those
}

/// A repetition of a boot, after the check of its request.
struct Planned {
    boot: &'static Boot,
    repeat: &'static Repeat,
    job: Job,
}

impl Experiment {
    /// Checks the boots of the experiment, and returns their jobs.
    fn jobs(&self, args: &ExperimentArgs) -> Result<Vec<Planned>> {
        let boots = self.boots.iter();
        let repeats = boots.flat_map(|boot| boot.repeats.iter().map(move |repeat| (boot, repeat)));
        let jobs = repeats.map(|(boot, repeat)| {
            let job = |boot: &Boot, repeat: &Repeat| {
                let mut of = boot.args(&args.board, repeat, args.seed);
                of.metric = self.metric;
                if let Some(kernel) = boot.kernel() {
                    of.load.given.guest =
                        Some(posted::build_kernel(kernel, args.patches.as_deref())?);
                }
                Ok::<_, anyhow::Error>(Job::new(&of)?.within(&args.limits))
            };
            let mut whole = job(boot, repeat)?;
            let simulated = matches!(whole.board().machine, EmulatedMachine::Gem5(_));
            if simulated && self.metric.is_none() {
                let (boot, repeat) = boot.brief(repeat);
                whole = job(&boot, &repeat)?;
            }
            Ok(Planned {
                boot,
                repeat,
                job: whole,
            })
        });
        jobs.collect()
    }

    /// Runs the boots, and draws the conclusions.
    fn report(
        &self,
        mut jobs: Vec<Planned>,
        asked: Option<NonZeroUsize>,
        folder: &Folder,
        title: &str,
    ) -> Result<Report, Failed> {
        let at_a_time = parallel_boots(&mut jobs, asked)?;
        let mut runs = Runs::new(self.name);
        let boots = jobs.len();
        let mut failed = None;
        side_by_side::in_order(
            jobs,
            at_a_time,
            |place, planned| {
                let name = planned.boot.name(planned.repeat);
                step!("{title}: boot {} of {boots}, {name}", place + 1);
                let session = self.boot(&planned, &name, folder);
                (planned, session)
            },
            |(Planned { boot, repeat, .. }, session)| match session {
                Ok(results) => {
                    runs.add(boot.label, repeat.name, results);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed.get_or_insert(error);
                    ControlFlow::Break(())
                }
            },
        );
        match failed {
            Some(failed) => Err(failed),
            None => Ok(self.draw_conclusions(&runs)?),
        }
    }

    /// Draws the conclusions from the experiment's boots.
    fn draw_conclusions(&self, runs: &Runs) -> Result<Report> {
        Ok(Report {
            name: self.name,
            question: self.question,
            source: self.source,
            comparable: self.comparable,
            metric: self.metric,
            medians: runs.map_results(cell_medians),
            runs: runs
                .named_results()
                .map(|(name, results)| report::without_cells(&name, results))
                .collect(),
            caveats: report::caveats(runs.named_results().map(|(_, results)| results)),
            outcome: (self.conclude)(runs)?,
        })
    }
}

impl Experiment {
    /// Measures a boot under the name `name`.
    fn boot(&self, planned: &Planned, name: &str, folder: &Folder) -> Result<Results, Failed> {
        let job = &planned.job;
        let place = folder.inside(&format!("{}-{name}", self.name));
        let inner = Folder::claim(Some(&place), &job.board().name)?;
        let session = session::run(job, inner, Show::Dumps)?;
        match session.failure {
            None => Ok(session.results),
            Some(failure) => Err(Failed {
                error: anyhow!("boot {name}: {}", failure.told()),
                ends_all: failure.ends_all(),
            }),
        }
    }
}

/// Returns how many boots run at a time, given the requested number. A single boot runs its own parts in parallel.
fn parallel_boots(jobs: &mut [Planned], asked: Option<NonZeroUsize>) -> Result<NonZeroUsize> {
    let mut least = NonZeroUsize::MAX;
    for Planned { job, .. } in &*jobs {
        // If values are times, boots would disturb each other.
        let asked = asked.filter(|_| job.metric != Metric::Time);
        least = least.min(job.at_a_time(asked)?);
    }
    if let [Planned { job, .. }] = jobs {
        job.jobs = least;
        return Ok(NonZeroUsize::MIN);
    }
    Ok(least)
}

/// Returns the medians of all cells, in order.
fn cell_medians(results: &Results) -> Vec<Option<u64>> {
    let cells = results.cells.iter();
    cells.map(|cell| Some(cell.stats?.p50)).collect()
}

#[cfg(test)]
mod tests;
