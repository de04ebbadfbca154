// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes, before the first boot, how many claims can be judged on a board.
//!
//! A claim is not judged if its figures depend on properties that the machine lacks. The cells alone determine which
//! figures depend on such properties. So the experiment draws its conclusions here from invented samples of the planned
//! cells. The board's stored run in `results/` shows which properties the machine lacks.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use plan::{Machine, Under};
use results::{Cell, Critical, Results, Stats};
use serde_json::Value;

use super::outcome::Claim;
use super::report::{count_verdicts, lacking_properties};
use super::runs::Runs;
use super::{Experiment, Planned};
use running::job::Job;
use shell::places;

/// Number of invented samples, enough for every percentile; also the value of every invented statistic.
const SAMPLES: u64 = 10_000;
/// Names of the counters of a neighbour's activity.
const NEIGHBOUR: [&str; 5] = ["ticks", "given", "taken", "work", "turns"];

/// The stored run of a board, which has the findings of its probes.
pub struct Found(Results);

impl Found {
    /// Reads the stored run of the job's board. `None` if no run in the job's unit is stored.
    pub fn read_stored_run(job: &Job) -> Option<Self> {
        let name = format!("results/{}.json", job.board().name);
        let text = fs::read_to_string(places::root().join(name)).ok()?;
        let results: Results = serde_json::from_str(&text).ok()?;
        (results.unit == job.metric.to_string()).then_some(Self(results))
    }

    fn answer(&self, probe: &str) -> Option<&Value> {
        self.0.fidelity.get(probe)
    }

    fn is_yes(&self, probe: &str) -> bool {
        self.answer(probe) == Some(&Value::Bool(true))
    }

    /// Returns the machine that the guest of `job` would find.
    fn machine(&self, job: &Job, under: Under) -> Result<Machine> {
        let has_wfxt = !matches!(self.answer("wfet_halts"), Some(Value::String(_)));
        Ok(Machine {
            wfxt: has_wfxt,
            cpus_at_once: self.is_yes("cpus_run_at_once"),
            caches: self.is_yes("caches_modelled"),
            ..job.machine(under)?
        })
    }

    /// Returns results of `job` with invented samples.
    fn made_up_results(&self, job: &Job, under: Under) -> Result<Results> {
        let machine = self.machine(job, under)?;
        let cells = job.load.plan.cells(&machine);
        let cells = cells.map(|what| self.made_up_cell(what, &machine));
        let mut results = Results {
            cells: cells.collect(),
            fidelity: self.0.fidelity.clone(),
            machine: self.0.machine.clone(),
            unit: self.0.unit.clone(),
            ..Results::default()
        };
        results.machine.cntfrq_hz = machine.frequency;
        Ok(results)
    }

    fn made_up_cell(&self, what: plan::Cell, machine: &Machine) -> Cell {
        let skipped = what.skip_reason(machine);
        let stats = Stats {
            count: SAMPLES,
            min: SAMPLES,
            p50: SAMPLES,
            p90: SAMPLES,
            p99: SAMPLES,
            p999: SAMPLES,
            max: SAMPLES,
            mean: SAMPLES as f64,
        };
        let neighbour = NEIGHBOUR.map(|name| (name.to_owned(), SAMPLES));
        let lacks = what.depends_on().filter(|probe| !self.is_yes(probe));
        Cell {
            cpus: machine.cpus as u64,
            // The counter generates only periods that are powers of two.
            event_stream_made_ns: u64::from(what.event_stream_us) * 1024,
            made: SAMPLES,
            unit: self.0.unit.clone(),
            stats: skipped.is_none().then_some(stats),
            critical: Some(Critical {
                parties: stats,
                ..Critical::default()
            }),
            counters: BTreeMap::from([("neighbour".to_owned(), neighbour.into())]),
            not_modelled: match what.workload.is_linux() {
                true => Vec::new(),
                false => lacks.map(String::from).collect(),
            },
            skipped: skipped.map(|why| why.to_string()),
            what,
            ..Cell::default()
        }
    }
}

/// Returns the claims that `experiment` would make about `jobs`, with invented figures. `None` if the claims are known
/// only after the jobs have run.
fn claims(experiment: &Experiment, jobs: &[Planned]) -> Option<Vec<Claim>> {
    let runs = made_up_runs(experiment, jobs)?;
    Some((experiment.conclude)(&runs).ok()?.claims)
}

/// Returns the boots of `jobs`, with invented figures.
fn made_up_runs(experiment: &Experiment, jobs: &[Planned]) -> Option<Runs> {
    let found = Found::read_stored_run(&jobs.first()?.job)?;
    let mut runs = Runs::new(experiment.name);
    for Planned { boot, repeat, job } in jobs {
        runs.add(
            boot.label,
            repeat.name,
            found.made_up_results(job, boot.under).ok()?,
        );
    }
    Some(runs)
}

/// Describes how many of `experiment`'s claims can be judged on the board of `jobs`, and which properties the remaining
/// claims need.
pub fn describe_judgeable(experiment: &Experiment, jobs: &[Planned]) -> Vec<String> {
    let name = experiment.name;
    let Some(claims) = claims(experiment, jobs) else {
        return vec![format!(
            "{name}: how many of its claims this board can judge shows when its boots are over: results/ has no run of this board in this unit"
        )];
    };
    let first = format!(
        "{name}: {}",
        count_verdicts(claims.iter()).judged_on("this board")
    );
    [first]
        .into_iter()
        .chain(lacking_properties(&claims, experiment.metric))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{args, args_on};
    use crate::verdict::Verdict;
    use crate::{ALL, page, poll_limit, who_pays};
    use ::page::document::Document;

    /// Experiments, each with the number of its claims, and the number of these claims that boots on `virt` could not
    /// judge.
    const SHOWN: [(&str, usize, usize); 9] = [
        ("poll-limit", 12, 12),
        ("mostly-idle", 11, 11),
        ("resched-ipis", 4, 4),
        ("ipistorm", 17, 16),
        ("clients", 8, 8),
        ("idle-poll", 4, 4),
        ("where-to-poll", 8, 7),
        ("event-stream", 12, 11),
        ("who-pays", 20, 14),
    ];

    #[test]
    fn what_boots_have_shown_is_known_before_they_run() {
        for experiment in ALL {
            let name = experiment.name;
            let jobs = experiment.jobs(&args(name)).unwrap();
            let claims = claims(experiment, &jobs).unwrap();
            let not = claims
                .iter()
                .filter(|claim| claim.verdict() == Verdict::NotModelled);
            let not = not.count();
            if let Some(shown) = SHOWN.iter().find(|(shown, ..)| *shown == name) {
                assert_eq!((name, claims.len(), not), *shown);
            }
            let lines = describe_judgeable(experiment, &jobs);
            let judged = format!("{name}: {} of {} claims", claims.len() - not, claims.len());
            assert!(lines[0].starts_with(&judged), "{lines:?}");
            assert_eq!(lines.len() > 1, not > 0, "{lines:?}");
        }
    }

    #[test]
    fn a_board_without_a_kept_run_is_no_guess() {
        let args = args_on("gem5", "who-pays");
        let jobs = who_pays::EXPERIMENT.jobs(&args).unwrap();
        let lines = describe_judgeable(&who_pays::EXPERIMENT, &jobs);
        assert!(
            lines[0].contains("results/ has no run of this board"),
            "{lines:?}"
        );
    }

    #[test]
    fn verdicts_come_before_claims_and_claims_before_figures() {
        let experiment = &poll_limit::EXPERIMENT;
        let jobs = experiment.jobs(&args(experiment.name)).unwrap();
        let report = experiment
            .draw_conclusions(&made_up_runs(experiment, &jobs).unwrap())
            .unwrap();
        let mut document = Document::default();
        report.show(&mut document);
        let text = document.terminal(None).join("\n");
        let html = page::html(&[report], "x");
        for text in [&text, &html] {
            let places = [
                "0 of 12 claims can be judged",
                "WFE waits for a store to the monitored line",
                "any limit is better than none",
                "Requests per second by poll limit (us)",
            ];
            let places = places.map(|part| {
                text.find(part)
                    .unwrap_or_else(|| panic!("{part} in {text}"))
            });
            assert!(places.is_sorted(), "{places:?} in {text}");
        }
        assert!(
            text.contains("A board that may judge them: --board gem5"),
            "{text}"
        );
    }
}
