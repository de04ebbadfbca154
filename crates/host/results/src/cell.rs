// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a cell in `results.json`, and values derived from it. The comment of a field is also its description
//! in docs/results.schema.json.

use std::collections::BTreeMap;

use foreign::Quoted;
use plan::{DIMENSIONS, End, HostPoll, Info, Place, Under, Word, Workload};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::energy::EnergyModel;
use crate::linux_idle::IdleState;
use crate::path::Critical;
use crate::program::Program;
use crate::types::{Counts, is_zero};
use crate::{Stage, Stats, checked_texts, words};

/// Name of the entry in the list of stages that covers all stages together, and is not a stage itself.
const STAMPED: &str = "traced";

/// Returns the names of the words that define a cell, in the order of the columns in results.csv.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let fields = DIMENSIONS.iter().filter(|info| info.place != Place::System);
    let fields = fields.map(|info| info.key);
    std::iter::once("under")
        .chain(fields)
        .chain(["system", "cpus"])
}

/// One combination of values of all dimensions, with its samples.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Cell {
    /// Name of the run that the cell belongs to, if there are several runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Number of the cell in its boot.
    pub id: u64,
    /// Hypervisor below the guest.
    #[serde(serialize_with = "word", deserialize_with = "known_word")]
    #[schemars(schema_with = "words_of_under")]
    pub under: Under,
    /// The values of the dimensions, which are fields of the cell and of `system`.
    #[serde(flatten, with = "words")]
    #[schemars(schema_with = "words::schema")]
    pub what: plan::Cell,
    /// How Linux idled: the active driver and governor of cpuidle, such as `none/menu`; left out if
    /// the guest is not Linux.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub idles_by: String,
    /// Idle states from which cpuidle could choose; left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Period of the event stream that the counter provides, nanoseconds; 0 without an event
    /// stream.
    pub event_stream_made_ns: u64,
    /// CPUs that took part.
    pub cpus: u64,
    /// Affinity, as in MPIDR_EL1, of the CPU that wakes the other one and measures; left out if the
    /// workload is not between two CPUs, or if the affinity is not known.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "checked_texts::read_affinity"
    )]
    #[schemars(schema_with = "checked_texts::schema_of_affinity")]
    pub sender: String,
    /// Likewise, the affinity of the CPU that is woken.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "checked_texts::read_affinity"
    )]
    #[schemars(schema_with = "checked_texts::schema_of_affinity")]
    pub receiver: String,
    /// Maximum number of wake-ups that was requested.
    pub iterations: u64,
    /// Number of passes of the cell that were run; 0 if not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes: u64,
    /// Number of passes that were planned.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes_planned: u64,
    /// Median of each pass, in order; left out if one of the medians is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_p50: Vec<u64>,
    /// Frequency of the core that measures (the sender or the first CPU) at the beginning and at
    /// the end of each pass, Hz; 0 where the clock stood still; left out if the machine does not
    /// report it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_core_hz: Vec<[u64; 2]>,
    /// By how much the frequency of the core changed, or differed from that of the run's first pass
    /// on this core, as a share of the highest frequency; left out if at most 0.02.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_moved: Option<f64>,
    /// Clock of the core that measured, which converted its ticks to cycles, Hz; left out if the
    /// values are not cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_hz: Option<u64>,
    /// The step of the counter as a share of the median, at most 1; left out if it is at most 0.05
    /// or not known, or if the values are not times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_coarse: Option<f64>,
    /// Number of wake-ups that the counters cover: the samples, and further wake-ups made in the same way; 0 if not
    /// known.
    #[serde(skip_serializing_if = "is_zero")]
    pub made: u64,
    /// Why the cell ended: `settled`, `samples` or `budget`; `null` if it did not end, or if the
    /// reason is not known.
    #[serde(
        serialize_with = "optional_word",
        deserialize_with = "optional_known_word"
    )]
    #[schemars(schema_with = "words_of_end")]
    pub ended: Option<End>,
    /// Unit of the cell's values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// Statistics of whole samples, from end to end; `null` if the cell was skipped.
    pub stats: Option<Stats>,
    /// The samples, divided by what the CPUs executed; absent if execution was not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical: Option<Critical>,
    /// The stages of the samples.
    pub stages: Vec<Stage>,
    /// Exits by cause.
    pub exits: Counts,
    /// Interrupts between CPUs.
    pub ipis: Counts,
    /// Polls that ended at their limit.
    pub wakes: Counts,
    /// Time that the CPUs spent in each state within samples.
    pub residency: Counts,
    /// Energy of a wake-up, computed from stated watts: a model, not a measurement; left out if no
    /// watts were stated or the residency is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_model: Option<EnergyModel>,
    /// Counters that have no field of their own, by group.
    pub counters: BTreeMap<String, Counts>,
    /// Values and how often each occurred, by stage.
    pub histograms: BTreeMap<String, Vec<(u64, u64)>>,
    /// The samples themselves, by stage, if they were requested.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub raw: BTreeMap<String, Vec<u64>>,
    /// Properties that the cell's wait depends on and that the machine does not model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<String>,
    /// The program that the cell ran; left out if it ran none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Why the cell was not run.
    pub skipped: Option<String>,
}

impl Cell {
    /// Formats the number of the cell's passes: `2/4` if the cell was cut short, and otherwise `all`.
    pub fn passes_text(&self) -> String {
        match self.is_part() {
            true => format!("{}/{}", self.passes, self.passes_planned),
            false => "all".into(),
        }
    }

    /// Whether the cell was cut short, and thus lacks passes.
    pub fn is_part(&self) -> bool {
        self.passes_planned > 0 && self.ended.is_none()
    }

    /// Whether the cell has fewer wake-ups than requested because they took too long.
    pub fn ran_out_of_time(&self) -> bool {
        self.ended == Some(End::Budget)
    }

    /// Returns the number of wake-ups that the cell's counters cover, at least 1. This is the number of wake-ups that
    /// were made, or, if the log lacks that number, the number of samples.
    pub fn counted(&self) -> u64 {
        match self.made {
            0 => self.stats.map_or(1, |stats| stats.count.max(1)),
            made => made,
        }
    }

    /// Returns the value of a counter per sample, or 0 if the counter is missing.
    pub fn per_sample(&self, counts: &Counts, name: &str) -> f64 {
        let count = counts.get(name).copied().unwrap_or(0);
        count as f64 / self.counted() as f64
    }

    /// Returns a note if most of EL2's halts did not take the fast path in assembly, because the figures then describe
    /// another path. The cause may be a syndrome that the fast path does not handle. There is no note if slow halts are
    /// expected: with adaptive polling by EL2 or with a neighbour they are the rule, and with Linux they are frequent.
    pub fn slow_halts(&self) -> Option<String> {
        let el2 = self.counters.get("el2")?;
        let count = |name: &str| el2.get(name).copied().unwrap_or(0);
        let (slow, all) = (count("slow-halt"), count("halt"));
        let expected = self.what.host_poll != HostPoll::Fixed
            || self.what.neighbour.is_there()
            || self.what.workload.is_linux();
        (!expected && 2 * slow > all).then(|| {
            let share = 100.0 * (1.0 - slow as f64 / all.max(1) as f64);
            format!(
                "cell {}: {share:.0} % of the halts of EL2 took the path in assembly, {slow} of {all} did not",
                self.id
            )
        })
    }

    /// Whether any IPI was sent. With [`plan::Wake::Elide`], an IPI is sent only if the CPU to wake has already stopped
    /// polling.
    pub fn sends_ipis(&self) -> bool {
        self.ipis.get("sent").is_some_and(|sent| *sent > 0)
    }

    /// Whether exits are counted, either by the layer below the guest, or by the emulator, which observes each
    /// exception to EL2. If neither counts exits, a missing count does not mean 0.
    pub fn has_exit_counts(&self) -> bool {
        !self.under.is_other() || !self.exits.is_empty() || self.divided_samples().is_some()
    }

    /// Whether `floor` is the same cell on the bare machine, where nothing is trapped or injected.
    pub fn has_bare_machine_twin(&self, floor: &Self) -> bool {
        floor.under == Under::None
            && floor.what == self.what.on_bare_machine()
            && floor.cpus == self.cpus
    }

    /// Whether `other` is the same cell, under any hypervisor or none.
    pub fn is_like(&self, other: &Self) -> bool {
        other.what == self.what && other.cpus == self.cpus
    }

    /// Returns the stages of the sample.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.name != STAMPED)
    }

    /// Returns the statistics of whole samples with time stamps.
    pub fn stamped_stage(&self) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == STAMPED)
    }

    /// Returns the distortion: the ratio of the median with time stamps to the median without. `None` if there are no
    /// time stamps.
    pub fn distortion(&self) -> Option<f64> {
        let (with, without) = (self.stamped_stage()?.stats.p50, self.stats?.p50);
        (without > 0).then(|| with as f64 / without as f64)
    }

    /// Returns the value of `key`, one of the words that define the cell. The value is empty if the results lack it.
    /// Returns `None` if no word has this name.
    pub fn word(&self, key: &str) -> Option<String> {
        Some(match key {
            "under" => self.under.to_string(),
            "system" => self.system_text(),
            "cpus" => self.cpus.to_string(),
            _ => self.dimension_text(Info::find(key)?),
        })
    }

    /// Returns the value of a dimension, or an empty text if the results lack it.
    pub fn dimension_text(&self, info: &Info) -> String {
        if info.is_told(&self.what) {
            info.text(&self.what).to_string()
        } else {
            String::new()
        }
    }

    /// Returns the values of the system's dimensions, sorted by name, such as `call-by=notify,offset=1`.
    fn system_text(&self) -> String {
        let words = self.what.system();
        let words = words.map(|info| format!("{}={}", info.key, info.text(&self.what)));
        let mut words: Vec<String> = words.collect();
        words.sort_unstable();
        words.join(",")
    }

    /// Returns the statistics of the samples, if there are enough samples for a median. For a program, one run is
    /// enough.
    pub fn stats_with_median(&self) -> Option<Stats> {
        let is_a_run = self.what.workload.is_a_run();
        self.stats
            .filter(|stats| is_a_run && stats.count > 0 || stats.supports(500))
    }

    /// Returns all words that distinguish the cell from the other cells of its run.
    pub fn key(&self) -> Vec<String> {
        keys()
            .map(|key| self.word(key).unwrap_or_default())
            .collect()
    }

    /// Returns the operation: the workload, and its shape if it has shapes.
    pub fn operation_name(&self) -> String {
        let plan::Cell { shape, .. } = self.what;
        let table = self.table_key();
        match self.what.workload {
            Workload::Pingpong => table,
            other if other.is_linux() => table,
            _ => format!("{table} {shape}"),
        }
    }

    /// Returns the key of the table that the cell belongs to: the workload, and whether its requests arrive at fixed
    /// times.
    pub fn table_key(&self) -> String {
        let loops = if self.what.is_open() {
            ", open loop"
        } else {
            ""
        };
        format!("{}{loops}", self.what.workload)
    }

    /// Returns the achieved rate of requests as a share of the intended rate: 1 if the receiver keeps up. `None` if
    /// requests do not arrive at fixed times.
    pub fn load_reached(&self) -> Option<f64> {
        let load = self.counters.get("arrivals")?;
        let ticks = |name: &str| load.get(name).copied().filter(|ticks| *ticks > 0);
        Some(ticks("asked-ticks")? as f64 / ticks("reached-ticks")? as f64)
    }

    /// Returns the cell's title, in one line.
    pub fn title(&self) -> String {
        let title = format!("{} {}", self.what.title(), self.system_text());
        title.trim_end().to_owned()
    }
}

fn words_of_under(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Under::NAMES })
}

fn words_of_end(_: &mut SchemaGenerator) -> Schema {
    let words = End::NAMES.iter().map(|&name| Value::from(name));
    let words: Vec<Value> = words.chain([Value::Null]).collect();
    json_schema!({ "enum": words })
}

fn word<S: Serializer>(word: &impl Word, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word.name())
}

fn optional_word<S: Serializer>(
    word: &Option<impl Word>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    word.map(Word::name).serialize(serializer)
}

fn known_word<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<W, D::Error> {
    parse_word(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn optional_known_word<'de, W: Word, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<W>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    let word = word.map(|word| parse_word(&word)).transpose();
    word.map_err(D::Error::custom)
}

/// Parses a word. The error for an unknown word lists the known ones.
pub fn parse_word<W: Word>(word: &str) -> Result<W, String> {
    let unknown = || {
        let word = Quoted::new(word);
        format!("there is no `{word}`; known are {}", W::NAMES.join(", "))
    };
    W::parse(word).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::results;

    #[test]
    fn halts_that_take_the_long_way_are_told() {
        let with = |halts: [(&str, u64); 2]| {
            let counts = halts.map(|(name, count)| (name.to_owned(), count));
            Cell {
                counters: [("el2".into(), counts.into())].into(),
                ..Cell::default()
            }
        };
        assert_eq!(Cell::default().slow_halts(), None);
        assert_eq!(with([("halt", 100), ("slow-halt", 50)]).slow_halts(), None);
        let mut slow = with([("halt", 100), ("slow-halt", 90)]);
        assert!(slow.slow_halts().unwrap().contains("10 % of the halts"));
        slow.what.host_poll = HostPoll::Adaptive;
        assert_eq!(slow.slow_halts(), None);
    }

    #[test]
    fn counters_are_of_all_that_was_made() {
        let mut cell = results().cells.remove(1);
        assert_eq!(cell.per_sample(&cell.exits, "wfi"), 2.0);
        cell.made = 5;
        assert_eq!(cell.per_sample(&cell.exits, "wfi"), 1.6);
    }
}
