// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of `results.json`. The comment of a field is also its description in docs/results.schema.json.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use plan::Under;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Build, Cell, CoreClock, INSNS, checked_texts, json, merge};

/// Version of the schema.
const SCHEMA: u32 = 1;

/// Counters by name.
pub type Counts = BTreeMap<String, u64>;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Results {
    /// Version of the schema: 1.
    #[schemars(range(min = 1, max = 1))]
    pub schema: u32,
    /// Name and version of the program that wrote the file, such as `rouse 0.1.0`.
    pub tool: String,
    /// Sources and tools of the images; `null` where they are not known, such as for a serial log.
    pub build: Option<Build>,
    /// When the first boot began, UTC, in the format of RFC 3339; left out if the results were read
    /// from a log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub began: String,
    /// Name of the board.
    pub board: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// Properties that the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// Details of these properties, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// Unit of values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// How the unit was determined.
    pub unit_how: String,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Whether something that was requested was not measured, because a boot was cut short.
    pub incomplete: bool,
    /// The parts that were not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Cells that can't be shown because some of their records are missing.
    pub damaged: Vec<String>,
    /// Other faults in the records.
    pub problems: Vec<String>,
    /// SErrors after which a boot went on; left out if there were none.
    #[serde(skip_serializing_if = "Serrors::is_none")]
    pub serrors: Serrors,
    /// Notes of the guest.
    pub notes: Vec<String>,
    /// The runs that the cells come from, if there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Origin>,
}

/// SErrors that EL2 took and after which the run went on.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Serrors {
    /// SErrors that firmware left: they were pending when a CPU entered the hypervisor.
    pub left: u64,
    /// Later SErrors whose error had been corrected.
    pub corrected: u64,
    /// Later restartable SErrors, whose error nothing had consumed.
    pub restartable: u64,
}

/// One of several merged runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Origin {
    /// Name of the run, which its cells have in `run`.
    pub label: String,
    /// Sources and tools of the run's images; `null` where they are not known.
    pub build: Option<Build>,
    /// When the run's first boot began, in the format of the whole file's `began`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub began: String,
    /// Name of the board.
    pub board: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// Properties that the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// Details of these properties, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// Unit of values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// How the unit was determined.
    pub unit_how: String,
    /// SErrors after which a boot went on; left out if there were none.
    #[serde(skip_serializing_if = "Serrors::is_none")]
    pub serrors: Serrors,
    /// Whether something that was requested was not measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

impl Origin {
    /// Describes `results` under the name `label`.
    #[must_use]
    pub fn of(label: &str, results: &Results) -> Self {
        Self {
            label: label.into(),
            build: results.build.clone(),
            began: results.began.clone(),
            board: results.board.clone(),
            machine: results.machine.clone(),
            fidelity: results.fidelity.clone(),
            fidelity_details: results.fidelity_details.clone(),
            unit: results.unit.clone(),
            unit_how: results.unit_how.clone(),
            serrors: results.serrors,
            incomplete: results.incomplete,
        }
    }
}

/// The machine that was measured.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
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
    /// Ticks by which the counter advances at a time, as the guest found; 0 if not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub counter_step: u64,
    /// Frequency of the core, if the guest measured it; 0 otherwise.
    #[serde(skip_serializing_if = "is_zero")]
    pub core_hz: u64,
    /// The clocks of the cores that measured, by affinity; left out where the machine does not
    /// report them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_clocks: Vec<CoreClock>,
    /// Interrupt controller.
    pub gic: String,
    /// List registers per CPU.
    pub list_registers: u64,
    /// Features of the architecture.
    pub features: BTreeMap<String, Value>,
    /// The emulator; `null` on hardware.
    pub emulator: Option<Emulator>,
    /// `fdt` or `acpi`.
    pub firmware: String,
    /// Name of the hypervisor below the guest, from the hypervisor itself or the machine's description. Empty if the
    /// hypervisor is Rouse, or if neither gives a name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    /// Other projects' hypervisors that guests ran under, by the words of `under`: name, version,
    /// and whatever else affects the numbers, such as `Xen 4.20.4-pre, scheduler credit2`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub below: BTreeMap<String, String>,
    /// Number of WFE and WFET instructions that were replaced by YIELD before a kernel was loaded:
    /// in `guest`, and in the `host` of KVM. Left out where each kernel ran unmodified.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub handed_over: BTreeMap<String, u64>,
}

/// The emulator of the machine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Emulator {
    /// Name of the emulator.
    pub name: String,
    /// Version of the emulator, such as `11.1.3`.
    pub version: String,
    /// The emulator's full description of its version, with the revision of the package; empty if
    /// it has nothing to add to `version`.
    pub exact: String,
    /// Mode of the emulator: `icount` or `mttcg` for QEMU, the CPU model for gem5.
    pub mode: String,
    /// Options of the modelled machine, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// One of the parameters of a modelled machine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Parameter {
    /// The value, with its unit.
    pub value: String,
    /// Where the value comes from.
    pub source: String,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Machine {
    /// Formats the counter for people: `1000 MHz`, with its step if the step is more than a tick.
    pub fn counter_text(&self) -> String {
        let frequency = format!("{} MHz", self.cntfrq_hz as f64 / 1e6);
        match self.counter_step {
            0 | 1 => frequency,
            ticks => format!("{frequency}, step {ticks} ticks"),
        }
    }

    /// Names the kernel, if Linux is the guest: `Linux 6.12.117, HZ 250`.
    pub fn kernel_text(&self) -> Option<String> {
        let hz = self.feature_text("linux_hz");
        let hz = hz.map_or(String::new(), |hz| format!(", HZ {hz}"));
        Some(format!("Linux {}{hz}", self.feature_text("linux")?))
    }

    /// Returns a feature as text.
    pub fn feature_text(&self, name: &str) -> Option<String> {
        Some(match self.features.get(name)? {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }
}

impl Serrors {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the SErrors of another boot.
    pub fn add_counts(&mut self, more: &Self) {
        self.left += more.left;
        self.corrected += more.corrected;
        self.restartable += more.restartable;
    }

    /// Formats for people how many SErrors of each kind there were. `None` if there were no SErrors.
    pub fn counts_text(&self) -> Option<String> {
        (!self.is_none()).then(|| {
            format!(
                "SErrors: {} left by firmware, {} corrected, {} restartable; the run went on behind each, \
                 and a wake-up in which one came is longer. The console names CPU and syndrome",
                self.left, self.corrected, self.restartable
            )
        })
    }
}

impl Results {
    /// Creates results without any boot yet.
    pub fn new(board: &str, cpu: &str, emulator: Option<Emulator>) -> Self {
        let mut results = Self {
            schema: SCHEMA,
            tool: concat!("rouse ", env!("CARGO_PKG_VERSION")).into(),
            board: board.into(),
            ..Self::default()
        };
        results.machine.cpu = cpu.into();
        results.machine.emulator = emulator;
        results
    }

    /// Whether there is anything to show, even if it is only a list of lost cells.
    pub fn has_cells(&self) -> bool {
        !self.cells.is_empty() || !self.damaged.is_empty()
    }

    /// Whether the counts are the same in every run. This is so if an emulator counts instructions, or if a simulator
    /// computes the values from a model, but not for Linux, which draws random numbers from a different seed in each
    /// repetition.
    pub fn has_repeatable_counts(&self) -> bool {
        let is_linux = |cell: &Cell| cell.what.workload.is_linux();
        let simulated = self.machine.emulator.as_ref();
        !self.cells.iter().any(is_linux)
            && (self.unit == INSNS || simulated.is_some_and(|emulator| emulator.name == "gem5"))
    }

    /// Returns the text of `results.json`.
    pub fn to_json(&self) -> Result<String> {
        json::text(self).context("results.json")
    }

    /// Adds a note that nothing, or not everything, was measured under `under`, with the reason `why`.
    pub fn lack(&mut self, under: Under, why: &str) {
        self.incomplete = true;
        let named = format!("under {under}: ");
        let why = why.strip_prefix(&named).unwrap_or(why);
        self.missing.push(format!("{named}{why}"));
    }

    /// Returns the notes. A note appears once for all runs that have it.
    pub fn shown_notes(&self) -> Vec<String> {
        merge::merge_run_texts(&self.notes, &self.runs)
    }

    /// Describes what is missing because a boot was cut short. `None` if nothing is missing.
    pub fn incomplete_text(&self) -> Option<String> {
        let missing = match self.missing.as_slice() {
            [] => "the run was cut short".into(),
            missing => merge::merge_run_texts(missing, &self.runs).join("; "),
        };
        self.incomplete.then_some(missing)
    }
}
