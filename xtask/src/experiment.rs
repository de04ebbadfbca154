// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `experiment`: what the authors of idle systems measured, measured
//! here, in a table of the same shape with their figures beside ours.
//!
//! An [`Experiment`] names its boots by options of `run`, and turns their results
//! into an [`Outcome`]: tables, and claims of the source with whether our numbers
//! agree, which is computed ([`outcome::Claim`]). `docs/experiments.md` says what
//! each can show.

mod find;
mod outcome;
mod page;

use anyhow::{Result, anyhow, bail};
use clap::Parser;
use results::Results;
use results::json;
use serde::Serialize;

use crate::boot::Show;
use crate::cli::{Cli, ExperimentArgs, Metric, Verb};
use crate::failure::{bad_input, is_bad_input};
use crate::folder::Folder;
use crate::job::Job;
use crate::output::Output;
use crate::terminal::{note, say};
use crate::{interrupt, session};
use find::Runs;
use outcome::Outcome;

/// One experiment.
pub struct Experiment {
    /// Its name on the command line.
    name: &'static str,
    /// What it asks.
    question: &'static str,
    /// Whose figures are beside ours.
    source: &'static str,
    /// Its boots: a name, and options of `run`.
    runs: &'static [(&'static str, &'static str)],
    /// What its figures count; `None`: times, which whatever the board counts will do for.
    metric: Option<Metric>,
    /// What comes of them.
    conclude: fn(&Runs) -> Result<Outcome>,
    /// What can be compared with the source, and what can't.
    comparable: &'static str,
}

/// Declares the experiments by their modules, in the order of the report.
macro_rules! experiments {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// Every experiment.
        const ALL: &[&Experiment] = &[$(&$module::EXPERIMENT),*];
    };
}

experiments! {
    poll_limit,
    sched,
    resched_ipis,
    ipistorm,
    psd,
    idle_poll,
    governors,
    where_to_poll,
    event_stream,
}

/// Names that experiments had before, and those that they have.
const RENAMED: [(&str, &str); 1] = [("who-polls", "where-to-poll")];

/// Their names, as a list.
pub fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
    names.join(", ")
}

/// Names of the files of a report.
const PAGE: &str = "report.html";
const DATA: &str = "experiments.json";

/// What is written of an experiment.
#[derive(Serialize)]
struct Report {
    name: &'static str,
    question: &'static str,
    source: &'static str,
    comparable: &'static str,
    /// Medians of every cell, by boot, in order: what has to repeat.
    medians: Vec<(String, Vec<Option<u64>>)>,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Does what `cargo xtask experiment` promises.
pub fn run(args: &ExperimentArgs) -> Result<()> {
    let chosen = choose(&args.names)?;
    // Everything is checked before anything runs.
    let jobs = chosen
        .iter()
        .map(|experiment| experiment.jobs(args))
        .collect::<Result<Vec<_>>>()?;
    let mut folder = Folder::claim(args.out.as_deref(), "experiment")?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    let mut done = Done::default();
    for (number, (experiment, jobs)) in (1..).zip(chosen.iter().zip(jobs)) {
        let name = experiment.name;
        let title = format!("experiment {number} of {}, {name}", chosen.len());
        if done.add(name, experiment.report(jobs, &folder, &title)) {
            break;
        }
    }
    let data = json::text(&done.reports)?;
    folder.write(DATA, &data);
    folder.write(PAGE, &page::html(&done.reports));
    let closed = match done.errors.is_empty() {
        true => folder.close(None),
        false => folder.give_up("not every experiment is complete"),
    };
    say!("report: {}/{PAGE}", closed.place);
    // What is not whole replaces no older file unless there is something in it.
    if let Some(copy) = copy.filter(|_| !done.reports.is_empty()) {
        copy.write(&data)?;
    }
    done.judge(chosen.len(), &closed.place)?;
    closed.complete().map(drop)
}

/// What came of the experiments so far.
#[derive(Default)]
struct Done {
    reports: Vec<Report>,
    errors: Vec<anyhow::Error>,
}

impl Done {
    /// Takes what came of one, shows it, and says whether that ends all of them. The
    /// failure of one need not be that of the next.
    fn add(&mut self, name: &str, report: Result<Report, Failed>) -> bool {
        match report {
            Ok(report) => {
                say!("{}", report.lines().join("\n"));
                self.reports.push(report);
                false
            }
            Err(Failed { error, ends_all }) => {
                let error = error.context(format!("experiment {name}"));
                note!("{error:#}");
                self.errors.push(error);
                ends_all
            }
        }
    }

    /// Fails unless all of them, as many as were `asked` for, are there.
    fn judge(self, asked: usize, place: &str) -> Result<()> {
        let complete = self.reports.len();
        match self.errors.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(first.context(format!(
                "experiments: {complete} complete, {} missing; what there is, with the boots of all, is in {place}",
                asked - complete
            ))),
        }
    }
}

/// An experiment that came to nothing.
struct Failed {
    error: anyhow::Error,
    /// Whether those after it would do no better.
    ends_all: bool,
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        let ends_all = interrupt::requested() || is_bad_input(&error);
        Self { error, ends_all }
    }
}

/// The experiments of these names.
fn choose(names: &[String]) -> Result<Vec<&'static Experiment>> {
    if names.iter().any(|name| name == "all") {
        return Ok(ALL.to_vec());
    }
    let mut chosen = Vec::new();
    for name in names {
        let renamed = RENAMED.iter().find(|(old, _)| old == name);
        let name = renamed.map_or(&**name, |(_, new)| new);
        match ALL.iter().find(|experiment| experiment.name == name) {
            Some(experiment) => chosen.push(*experiment),
            None => {
                bad_input!(
                    "there is no experiment `{name}`; use all, {}",
                    self::names()
                );
            }
        }
    }
    Ok(chosen)
}

impl Experiment {
    /// Its boots, checked.
    fn jobs(&self, args: &ExperimentArgs) -> Result<Vec<(&'static str, Job)>> {
        let job = |&(label, options): &(&'static str, &str)| {
            let mut words = vec![
                "xtask".into(),
                "run".into(),
                format!("--board={}", args.board),
            ];
            // Experiments say how many wake-ups they need.
            words.push("--cell-ms=0".into());
            words.extend(self.metric.map(|metric| format!("--metric={metric}")));
            words.extend(args.limits.words());
            words.extend(options.split_ascii_whitespace().map(String::from));
            match Cli::try_parse_from(words)?.verb {
                Verb::Run(run) => Ok((label, Job::of_run(&run)?)),
                _ => bail!("{}: its options are not those of `run`", self.name),
            }
        };
        self.runs.iter().map(job).collect()
    }

    /// Boots, and concludes.
    fn report(
        &self,
        jobs: Vec<(&'static str, Job)>,
        folder: &Folder,
        title: &str,
    ) -> Result<Report, Failed> {
        let mut runs = Runs::new(self.name);
        let boots = jobs.len();
        for (number, (label, job)) in (1..).zip(jobs) {
            note!("{title}: boot {number} of {boots}, {label}");
            let place = folder.inside(&format!("{}-{label}", self.name));
            let inner = Folder::claim(Some(&place), &job.board().name)?;
            let session = session::run(&job, inner, Show::Dumps)?;
            if let Some(failure) = session.failure {
                return Err(Failed {
                    error: anyhow!("boot {label}: {}", failure.told()),
                    ends_all: failure.ends_all(),
                });
            }
            runs.add(label, session.results);
        }
        Ok(Report {
            name: self.name,
            question: self.question,
            source: self.source,
            comparable: self.comparable,
            medians: runs.each(|label, results| (label.to_owned(), medians(results))),
            outcome: (self.conclude)(&runs)?,
        })
    }
}

/// The median of every cell, in order.
fn medians(results: &Results) -> Vec<Option<u64>> {
    let cells = results.cells.iter();
    cells.map(|cell| Some(cell.stats?.p50)).collect()
}

impl Report {
    /// What is shown on the terminal.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            String::new(),
            format!("{}: {}", self.name, self.question),
            format!("source: {}", self.source),
        ];
        lines.extend(self.outcome.lines());
        lines.push(format!("comparable: {}", self.comparable));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str) -> ExperimentArgs {
        args_on("virt", name)
    }

    fn args_on(board: &str, name: &str) -> ExperimentArgs {
        let line = ["xtask", "experiment", name, "--board", board];
        match Cli::try_parse_from(line).unwrap().verb {
            Verb::Experiment(args) => args,
            _ => unreachable!("the verb is experiment"),
        }
    }

    #[test]
    fn every_experiment_has_boots_that_can_run() {
        let args = args("all");
        for experiment in choose(&args.names).unwrap() {
            let jobs = experiment.jobs(&args).unwrap();
            assert!(!jobs.is_empty(), "{}", experiment.name);
        }
    }

    #[test]
    fn what_is_about_instructions_is_refused_where_there_are_none() {
        let args = args_on("gem5", "all");
        for experiment in ALL {
            let jobs = experiment.jobs(&args);
            match experiment.metric {
                None => assert_eq!(jobs.unwrap().len(), experiment.runs.len()),
                Some(_) => assert!(is_bad_input(&jobs.unwrap_err()), "{}", experiment.name),
            }
        }
    }

    fn report(name: &'static str) -> Report {
        Report {
            name,
            question: "",
            source: "",
            comparable: "",
            medians: Vec::new(),
            outcome: Outcome {
                tables: Vec::new(),
                charts: Vec::new(),
                claims: Vec::new(),
                notes: Vec::new(),
            },
        }
    }

    #[test]
    fn what_was_done_before_and_after_a_failure_is_kept() {
        let failed = |ends_all| Failed {
            error: anyhow!("boot main: no progress"),
            ends_all,
        };
        let mut done = Done::default();
        assert!(!done.add("sched", Ok(report("sched"))));
        assert!(!done.add("psd", Err(failed(false))));
        assert!(!done.add("ipistorm", Ok(report("ipistorm"))));
        assert!(done.add("poll-limit", Err(failed(true))));
        let error = format!("{:#}", done.judge(9, "place").unwrap_err());
        assert!(error.contains("2 complete, 7 missing"), "{error}");
        assert!(
            error.contains("experiment psd: boot main: no progress"),
            "{error}"
        );
        assert!(Done::default().judge(1, "place").is_ok());
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_there_are() {
        let error = choose(&args("psdd").names).err().unwrap();
        assert!(is_bad_input(&error));
        assert!(error.to_string().contains("use all, poll-limit, sched"));
    }
}
