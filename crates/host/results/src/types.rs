// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of `results.json`. The comment of a field is also its description in
//! docs/results.schema.json.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use plan::Under;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Cell, CoreClock, INSNS, checked_texts, json, merge};

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
    /// Name and version of the program that wrote it, as `rouse 0.1.0`.
    pub tool: String,
    /// Sources and tools of the images; `null` where that is not known, as of
    /// a serial log.
    pub build: Option<Build>,
    /// When its first boot began, UTC, as RFC 3339 has it; left out of what was read from a log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub began: String,
    /// Name of the board.
    pub board: String,
    /// Where it was measured.
    pub machine: Machine,
    /// Properties that the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// More about it, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// Unit of values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// How that was found out.
    pub unit_how: String,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Not all that was asked for was measured: a boot was cut short.
    pub incomplete: bool,
    /// Parts that are absent because of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Cells that can't be shown because records of theirs are missing.
    pub damaged: Vec<String>,
    /// Other faults of the records.
    pub problems: Vec<String>,
    /// SErrors behind which its boots went on; left out if there were none.
    #[serde(skip_serializing_if = "Serrors::is_none")]
    pub serrors: Serrors,
    /// Notes of the guest.
    pub notes: Vec<String>,
    /// Where the cells come from, if that is more than one run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Origin>,
}

/// SErrors that EL2 has taken, and behind which a run went on.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Serrors {
    /// Errors that were pending when a CPU came to the hypervisor: firmware left them.
    pub left: u64,
    /// Those since then whose error had been corrected.
    pub corrected: u64,
    /// Those since then that nothing had used.
    pub restartable: u64,
}

/// Sources and tools of the images.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Build {
    /// Version of the compiler, as rustc's line `release`; empty if it is not known.
    pub rustc: String,
    /// The compiler's commit, 40 digits; empty where rustc does not tell it.
    pub rustc_commit: String,
    /// Version of the compiler's LLVM.
    pub llvm: String,
    /// The tree's commit, 40 digits; empty outside of a git repository.
    pub commit: String,
    /// Whether files of the tree were not as in that commit.
    pub dirty: bool,
    /// SHA-256 of the packed image, 64 digits: the hypervisor with all images of the guest; empty where none was packed.
    pub image: String,
}

/// One of the runs that were put together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Origin {
    /// Name of the run in `run` of its cells.
    pub label: String,
    /// Sources and tools of its images; `null` where that is not known.
    pub build: Option<Build>,
    /// When its first boot began, as of the whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub began: String,
    /// Name of the board.
    pub board: String,
    /// Where it was measured.
    pub machine: Machine,
    /// Properties that the machine was found to model.
    pub fidelity: BTreeMap<String, Value>,
    /// More about it, for people.
    pub fidelity_details: BTreeMap<String, String>,
    /// Unit of values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// How that was found out.
    pub unit_how: String,
    /// SErrors behind which its boots went on; left out if there were none.
    #[serde(skip_serializing_if = "Serrors::is_none")]
    pub serrors: Serrors,
    /// Not all that was asked for was measured.
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

/// Where it was measured.
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
    /// Ticks by which the counter advances at a time, as the guest found them; 0 if that is not
    /// known.
    #[serde(skip_serializing_if = "is_zero")]
    pub counter_step: u64,
    /// Frequency of the core, if the guest measured it; 0 otherwise.
    #[serde(skip_serializing_if = "is_zero")]
    pub core_hz: u64,
    /// The clocks of the cores that measured, by affinity; left out where the machine does not tell
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_clocks: Vec<CoreClock>,
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
    /// The hypervisor below that is not Rouse, by the name that it or the machine's
    /// description gives; empty if none is named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    /// Hypervisors of others that guests ran under, by the words of `under`: name, version, and
    /// what else makes numbers what they are, as `Xen 4.20.4-pre, scheduler credit2`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub below: BTreeMap<String, String>,
    /// How many WFE and WFET were replaced by YIELD in a kernel before it was loaded: `guest`, and `host` of KVM. Left
    /// out where each kernel ran as it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub handed_over: BTreeMap<String, u64>,
}

/// The emulator of the machine.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Emulator {
    /// Its name.
    pub name: String,
    /// Its version, as `11.1.3`.
    pub version: String,
    /// Everything that it says of its version, with the revision of the package; empty
    /// if it says no more than that.
    pub exact: String,
    /// How it runs: `icount` or `mttcg` of QEMU, the CPU model of gem5.
    pub mode: String,
    /// Options of the modelled machine, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// One of the choices that make a modelled machine what it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Parameter {
    /// Its value, with the unit.
    pub value: String,
    /// Where that is from.
    pub source: String,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Machine {
    /// Formats the counter for people: `1000 MHz`, with its step if the step is more than a tick.
    pub fn counter(&self) -> String {
        let frequency = format!("{} MHz", self.cntfrq_hz as f64 / 1e6);
        match self.counter_step {
            0 | 1 => frequency,
            ticks => format!("{frequency}, step {ticks} ticks"),
        }
    }

    /// Names the kernel, if Linux is the guest: `Linux 6.12.117, HZ 250`.
    pub fn kernel(&self) -> Option<String> {
        let hz = self.feature("linux_hz");
        let hz = hz.map_or(String::new(), |hz| format!(", HZ {hz}"));
        Some(format!("Linux {}{hz}", self.feature("linux")?))
    }

    /// Returns a feature as text.
    pub fn feature(&self, name: &str) -> Option<String> {
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
    pub fn add(&mut self, more: &Self) {
        self.left += more.left;
        self.corrected += more.corrected;
        self.restartable += more.restartable;
    }

    /// Formats the number of SErrors of each kind for people. `None` if there were no SErrors.
    pub fn text(&self) -> Option<String> {
        (!self.is_none()).then(|| {
            format!(
                "SErrors: {} left by firmware, {} corrected, {} restartable; the run went on behind each, \
                 and a wake-up in which one came is longer. The console names CPU and syndrome",
                self.left, self.corrected, self.restartable
            )
        })
    }
}

impl Build {
    /// Formats the compiler, for people: `rustc 1.95.0 (59807616e1fa..., LLVM 22.1.2)`.
    pub fn compiler(&self) -> String {
        let parts = [
            self.rustc_commit.clone(),
            match self.llvm.as_str() {
                "" => String::new(),
                llvm => format!("LLVM {llvm}"),
            },
        ];
        let more: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match (self.rustc.as_str(), more.is_empty()) {
            ("", _) => String::new(),
            (rustc, true) => format!("rustc {rustc}"),
            (rustc, false) => format!("rustc {rustc} ({})", more.join(", ")),
        }
    }

    /// Formats the tree for people: its commit, and whether files have changed since.
    pub fn tree(&self) -> String {
        self.tree_as(self.commit.clone())
    }

    /// Formats the tree for people, with only the first digits of the commit.
    pub fn short_tree(&self) -> String {
        self.tree_as(self.commit.chars().take(12).collect())
    }

    fn tree_as(&self, commit: String) -> String {
        match (commit.as_str(), self.dirty) {
            ("", _) => String::new(),
            (_, false) => commit,
            (_, true) => format!("{commit}, with changes"),
        }
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

    /// Whether there is anything to show, even if only losses.
    pub fn has_cells(&self) -> bool {
        !self.cells.is_empty() || !self.damaged.is_empty()
    }

    /// Whether the counts are the same in every run. This holds for instructions that an emulator counts, and for
    /// everything that a simulator computes from a model. It does not hold for Linux, which draws random numbers from
    /// another seed in each repetition.
    pub fn repeats(&self) -> bool {
        let is_linux = |cell: &Cell| cell.what.workload.is_linux();
        let simulated = self.machine.emulator.as_ref();
        !self.cells.iter().any(is_linux)
            && (self.unit == INSNS || simulated.is_some_and(|emulator| emulator.name == "gem5"))
    }

    /// Returns the text of `results.json`.
    pub fn to_json(&self) -> Result<String> {
        json::text(self).context("results.json")
    }

    /// Notes that nothing, or not everything, was measured under `under`, with the reason `why`.
    pub fn lack(&mut self, under: Under, why: &str) {
        self.incomplete = true;
        let named = format!("under {under}: ");
        let why = why.strip_prefix(&named).unwrap_or(why);
        self.missing.push(format!("{named}{why}"));
    }

    /// Returns the notes; each appears once, for all runs that have it.
    pub fn shown_notes(&self) -> Vec<String> {
        merge::once(&self.notes, &self.runs)
    }

    /// Describes what a boot that was cut short has not measured. `None` if nothing is missing.
    pub fn incomplete_text(&self) -> Option<String> {
        let missing = match self.missing.as_slice() {
            [] => "the run was cut short".into(),
            missing => merge::once(missing, &self.runs).join("; "),
        };
        self.incomplete.then_some(missing)
    }
}
