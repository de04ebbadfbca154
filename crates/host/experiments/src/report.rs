// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports on experiments, and the document that contains them all.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use page::document::Document;
use plan::Word;
use results::merge::Run;
use results::{Machine, Origin, Results};
use serde::{Serialize, Serializer};

use super::outcome::{Claim, Outcome};
use super::verdict::Counts;
use running::options::Metric;
use shell::command;
use shell::failure::is_bad_input;
use shell::interrupt;
use shell::terminal::{self, note, print_document};

/// Version of the format. Version 1 was only the list of experiments, in which `text` and `ours` of a claim were texts.
/// Version 2 lacked `tool`, `command`, `machine` and `runs`.
const SCHEMA: u32 = 3;

/// The document on all experiments.
#[derive(Serialize)]
pub struct Written<'r> {
    schema: u32,
    /// Name and version of the program that wrote the document.
    tool: &'r str,
    /// Command that displays the report again.
    pub command: String,
    /// The machine of the first boot. Each run has its own machine, too.
    machine: Option<&'r Machine>,
    /// Number of claims with each verdict.
    pub verdicts: Counts,
    experiments: &'r [Report],
}

impl<'r> Written<'r> {
    /// Creates the document about `experiments`.
    pub fn of(experiments: &'r [Report]) -> Self {
        let first = experiments.iter().flat_map(|report| &report.runs).next();
        Self {
            schema: SCHEMA,
            tool: first.map_or("", |run| &run.results.tool),
            command: command::this_command(),
            machine: first.map(|run| &run.results.machine),
            verdicts: verdicts(experiments),
            experiments,
        }
    }
}

/// Counts the claims with each verdict.
pub fn verdicts(reports: &[Report]) -> Counts {
    count_verdicts(reports.iter().flat_map(|report| &report.outcome.claims))
}

pub fn count_verdicts<'c>(claims: impl Iterator<Item = &'c Claim>) -> Counts {
    Counts::of_claims(claims.map(|claim| (claim.verdict(), claim.verdict_on_counts())))
}

/// The report on an experiment.
#[derive(Serialize)]
pub struct Report {
    pub name: &'static str,
    pub question: &'static str,
    /// The source of the figures next to ours.
    pub source: &'static str,
    /// Which figures can be compared with the source's, and which can't.
    pub comparable: &'static str,
    /// The unit that the boots need, if they need a certain one.
    #[serde(skip)]
    pub metric: Option<Metric>,
    /// The medians of all cells, by boot, in order. These values have to repeat when the boots are repeated.
    pub medians: Vec<(String, Vec<Option<u64>>)>,
    /// The boots without their cells: the machine of each boot, and the properties that its samples depend on and the
    /// machine lacks.
    #[serde(serialize_with = "origins")]
    pub runs: Vec<Run>,
    /// A sentence for each way of waiting, which names the properties that its samples depend on and the machine lacks.
    pub caveats: Vec<String>,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Report {
    /// Describes how many of the claims can be judged, and their verdicts.
    pub fn verdict_summary(&self) -> String {
        count_verdicts(self.outcome.claims.iter()).summary_line()
    }

    /// Names the properties that claims without a verdict need.
    pub fn lacking_properties(&self) -> Vec<String> {
        lacking_properties(&self.outcome.claims, self.metric)
    }

    /// Adds the report to `document`: the verdicts, then the claims, then the figures.
    pub fn show(&self, document: &mut Document) {
        document.extend([
            String::new(),
            format!("{}: {}", self.name, self.question),
            self.verdict_summary(),
        ]);
        document.extend(self.lacking_properties());
        document.push(String::new());
        document.extend(self.outcome.claims.iter().map(Claim::summary_line));
        document.push(format!("source: {}", self.source));
        self.outcome.show(document);
        document.extend(self.caveats.iter().map(|line| format!("  * {line}")));
        document.push(format!("comparable: {}", self.comparable));
    }
}

/// Names the properties that the claims without a verdict need. If no claim has a verdict, adds a line on whether
/// another board can give one.
pub fn lacking_properties(claims: &[Claim], metric: Option<Metric>) -> Vec<String> {
    let missing: BTreeSet<&str> = claims.iter().flat_map(Claim::missing).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let counts = count_verdicts(claims.iter());
    let missing: Vec<&str> = missing.into_iter().map(::page::asked).collect();
    let others = match counts.none_is_judged() {
        true => "They",
        false => "The others",
    };
    let mut lines = vec![format!(
        "{others} need what it does not model: {}.",
        missing.join("; ")
    )];
    if counts.none_is_judged() {
        lines.push(match metric {
            None => "A board that may judge them: --board gem5. Here it is measured all the same.".into(),
            Some(_) => "No board that counts instructions models that, so no verdict is to come from here: what follows are \
                        counts, to read next to the source's figures."
                .into(),
        });
    }
    lines
}

fn origins<S: Serializer>(runs: &[Run], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(runs.iter().map(|run| Origin::of(&run.label, &run.results)))
}

/// Copies the results of a boot, except for the cells.
pub fn without_cells(label: &str, results: &Results) -> Run {
    let mut results = results.clone();
    results.cells.clear();
    Run {
        label: label.into(),
        results,
        commands: Vec::new(),
    }
}

/// Lists the properties that samples depend on and the machine lacks, in one line for each way of waiting.
pub fn caveats<'r>(all: impl Iterator<Item = &'r Results>) -> Vec<String> {
    let all: Vec<&Results> = all.collect();
    let counts =
        |results: &&&Results| results.fidelity.get("counts_instructions") == Some(&true.into());
    let counted = all.iter().find(counts).map(|results| {
        let each = results.machine.cntfrq_hz / 1_000_000;
        format!("us and seconds are of a counter that counts instructions: 1 us is {each} instructions, and no time of a machine")
    });
    let mut waits: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for cell in all.iter().flat_map(|results| &results.cells) {
        let probes = cell.not_modelled.iter().map(String::as_str);
        let wait = match cell.what.workload.is_linux() {
            true => format!("Linux that idles by {}", cell.idles_by),
            false => cell.what.wait.name().to_owned(),
        };
        waits.entry(wait).or_default().extend(probes);
    }
    let told = waits.into_iter().filter(|(_, probes)| !probes.is_empty());
    let told = told.map(|(wait, probes)| {
        let probes: Vec<&str> = probes.into_iter().map(::page::asked).collect();
        let probes = probes.join("; ");
        format!("samples of {wait} depend on what this machine does not model: {probes}")
    });
    told.chain(counted).collect()
}

/// The reports and errors of the experiments that have ended.
#[derive(Default)]
pub struct Done {
    /// The reports of the experiments that succeeded.
    pub reports: Vec<Report>,
    /// Errors of the experiments that failed.
    pub errors: Vec<anyhow::Error>,
}

impl Done {
    /// Adds the result of one experiment, and prints it. Returns whether the result ends all experiments: usually, the
    /// failure of one experiment does not mean that the next one will fail.
    pub fn add_report(&mut self, name: &str, report: Result<Report, Failed>) -> bool {
        match report {
            Ok(report) => {
                let mut document = Document::default();
                report.show(&mut document);
                print_document(&document, terminal::width());
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

    /// Fails unless there are `asked` reports, one for each requested experiment.
    pub fn require_all_reports(self, asked: usize, place: &str) -> Result<()> {
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

/// The failure of an experiment.
pub struct Failed {
    /// The error.
    pub error: anyhow::Error,
    /// Whether the following experiments would fail too.
    pub ends_all: bool,
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        let ends_all = interrupt::requested() || is_bad_input(&error);
        Self { error, ends_all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn report(name: &'static str) -> Report {
        Report {
            name,
            question: "",
            source: "",
            comparable: "",
            metric: None,
            medians: Vec::new(),
            runs: Vec::new(),
            caveats: Vec::new(),
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
        assert!(!done.add_report("sched", Ok(report("sched"))));
        assert!(!done.add_report("psd", Err(failed(false))));
        assert!(!done.add_report("ipistorm", Ok(report("ipistorm"))));
        assert!(done.add_report("poll-limit", Err(failed(true))));
        let error = format!("{:#}", done.require_all_reports(9, "place").unwrap_err());
        assert!(error.contains("2 complete, 7 missing"), "{error}");
        assert!(
            error.contains("experiment psd: boot main: no progress"),
            "{error}"
        );
        assert!(Done::default().require_all_reports(1, "place").is_ok());
    }
}
