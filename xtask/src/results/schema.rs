// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of `results.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Counters by name.
pub type Counts = BTreeMap<String, u64>;

/// Name of what is no stage, but the sum of the stages.
const STAMPED: &str = "traced";

/// The words that make a cell what it is.
pub const KEY: [&str; 15] = [
    "under",
    "workload",
    "shape",
    "wait",
    "trap",
    "deliver",
    "wake",
    "poll-limit-us",
    "host-poll-us",
    "host-poll",
    "hint",
    "event-stream-us",
    "gap-us",
    "system",
    "cpus",
];

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Results {
    /// Version of the schema.
    pub schema: u32,
    /// Who wrote it.
    pub tool: String,
    /// Name of the board.
    pub board: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// More about it, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// What values count.
    pub unit: String,
    /// How that was found out.
    pub unit_how: String,
    /// What was measured.
    pub cells: Vec<Cell>,
    /// Not all that was asked for was measured: a boot was cut short.
    pub incomplete: bool,
    /// What is not there because of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Cells that can't be shown because records of theirs are missing.
    pub damaged: Vec<String>,
    /// What else is wrong with the records.
    pub problems: Vec<String>,
    /// What the guest had to say.
    pub notes: Vec<String>,
    /// Where the cells come from, if that is more than one run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Origin>,
}

/// One of the runs that were put together.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Origin {
    /// What its cells name it.
    pub label: String,
    /// Name of the board.
    pub board: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// More about it, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// What values count.
    pub unit: String,
    /// How that was found out.
    pub unit_how: String,
    /// Not all that was asked for was measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// MIDR_EL1.
    pub midr: String,
    /// Number of CPUs.
    pub cpus: u64,
    /// Frequency of the counter.
    pub cntfrq_hz: u64,
    /// Frequency of the core, if the guest measured it; 0 otherwise.
    #[serde(skip_serializing_if = "is_zero")]
    pub core_hz: u64,
    /// Interrupt controller.
    pub gic: String,
    /// List registers per CPU.
    pub list_registers: u64,
    /// Features of the architecture.
    pub features: BTreeMap<String, Value>,
    /// `null` on hardware.
    pub emulator: Option<Emulator>,
    /// `fdt` or `acpi`.
    pub firmware: String,
}

/// What emulates the machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Emulator {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The way that it runs.
    pub mode: String,
    /// What was chosen of the machine that it models, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// One of the choices that make a modelled machine what it is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Parameter {
    /// Its value, with the unit.
    pub value: String,
    /// Where that is from.
    pub source: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One combination, with its samples.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Cell {
    /// The run that it is of, if that is one of several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Number in its boot.
    pub id: u64,
    /// What the guest ran under.
    pub under: String,
    /// What was run.
    pub workload: String,
    /// Who was interrupted.
    pub shape: String,
    /// How the receiver waited.
    pub wait: String,
    /// What trapped.
    pub trap: String,
    /// How interrupts were delivered.
    pub deliver: String,
    /// Whether a polling receiver was interrupted.
    pub wake: String,
    /// Guest poll limit.
    pub poll_limit_us: u64,
    /// EL2 poll limit.
    pub host_poll_us: u64,
    /// Event-stream period.
    pub event_stream_us: u64,
    /// What the counter makes of that, nanoseconds; 0 without event stream.
    pub event_stream_made_ns: u64,
    /// Pause between two wake-ups.
    pub gap_us: u64,
    /// CPUs that took part.
    pub cpus: u64,
    /// Wake-ups asked for at most.
    pub iterations: u64,
    /// Passes that it has; 0 if that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes: u64,
    /// Passes that there can be.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes_planned: u64,
    /// Why it ended: `settled`, `samples` or `budget`; `null` if it did not, or if that
    /// is not known.
    pub ended: Option<String>,
    /// What values count.
    pub unit: String,
    /// The sample from end to end; `null` if it was skipped.
    pub stats: Option<Stats>,
    /// Its parts.
    pub stages: Vec<Stage>,
    /// Exits by cause.
    pub exits: Counts,
    /// Interrupts between CPUs.
    pub ipis: Counts,
    /// What ended the waits.
    pub wakes: Counts,
    /// Where the time went.
    pub residency: Counts,
    /// Counters that have no place of their own, by group.
    pub counters: BTreeMap<String, Counts>,
    /// Values and counts, by stage.
    pub histograms: BTreeMap<String, Vec<(u64, u64)>>,
    /// The samples themselves, by stage, if they were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub raw: BTreeMap<String, Vec<u64>>,
    /// How EL2 chose its poll limit, if not as named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_poll: String,
    /// Whether the guest said that it polls, if it did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// What belongs to the workloads on the executor, as far as it applies.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, String>,
    /// What the machine would have to model for the cell to show what its wait
    /// is meant to do, and does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<String>,
    /// Why it was not run.
    pub skipped: Option<String>,
}

/// Statistics of samples.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Stats {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// A part of the sample.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its statistics.
    #[serde(flatten)]
    pub stats: Stats,
}

impl Results {
    /// What was not measured because a boot was cut short; `None` if nothing.
    pub fn incomplete_text(&self) -> Option<String> {
        let missing = match self.missing.as_slice() {
            [] => "the run was cut short".into(),
            missing => missing.join("; "),
        };
        self.incomplete.then_some(missing)
    }
}

impl Cell {
    /// How many passes it has, if it was cut short: `2/4`; else `all`.
    pub fn passes_text(&self) -> String {
        match self.is_part() {
            true => format!("{}/{}", self.passes, self.passes_planned),
            false => "all".into(),
        }
    }

    /// Whether it was cut short: more passes were to follow.
    pub fn is_part(&self) -> bool {
        self.passes_planned > 0 && self.ended.is_none()
    }

    /// Whether it has fewer wake-ups than asked for because they took too long.
    pub fn ran_out_of_time(&self) -> bool {
        self.ended.as_deref() == Some(plan::End::Budget.name())
    }

    /// A counter per sample; 0 if it did not count.
    pub fn per_sample(&self, counts: &Counts, name: &str) -> f64 {
        let count = counts.get(name).copied().unwrap_or(0);
        count as f64 / self.stats.map_or(1, |stats| stats.count.max(1)) as f64
    }

    /// The stages that the sample is made of.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.name != STAMPED)
    }

    /// The whole sample as it is with time stamps being taken.
    pub fn stamped(&self) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == STAMPED)
    }

    /// The value of one of the words that make the cell what it is.
    pub fn word(&self, key: &str) -> Option<String> {
        Some(match key {
            "under" => self.under.clone(),
            "workload" => self.workload.clone(),
            "shape" => self.shape.clone(),
            "wait" => self.wait.clone(),
            "trap" => self.trap.clone(),
            "deliver" => self.deliver.clone(),
            "wake" => self.wake.clone(),
            "poll-limit-us" => self.poll_limit_us.to_string(),
            "host-poll-us" => self.host_poll_us.to_string(),
            "host-poll" => self.host_poll.clone(),
            "hint" => self.hint.clone(),
            "event-stream-us" => self.event_stream_us.to_string(),
            "gap-us" => self.gap_us.to_string(),
            "system" => self.system_text(),
            "cpus" => self.cpus.to_string(),
            _ if plan::Systems::KEYS.contains(&key) => {
                self.system.get(key).cloned().unwrap_or_default()
            }
            _ => return None,
        })
    }

    /// The words of the systems, like `call-by=notify,offset=1`.
    fn system_text(&self) -> String {
        let words = self
            .system
            .iter()
            .map(|(key, word)| format!("{key}={word}"));
        words.collect::<Vec<_>>().join(",")
    }

    /// Everything that tells it from the other cells of its run.
    pub fn key(&self) -> Vec<String> {
        let words = KEY.iter();
        words
            .map(|key| self.word(key).unwrap_or_default())
            .collect()
    }

    /// What it is, in one line.
    pub fn title(&self) -> String {
        let words = [
            &self.workload,
            &self.shape,
            &self.wait,
            &self.trap,
            &self.deliver,
            &self.wake,
        ];
        let words: Vec<&str> = words.into_iter().map(String::as_str).collect();
        match self.system_text() {
            system if system.is_empty() => words.join(" "),
            system => format!("{} {system}", words.join(" ")),
        }
    }
}
