// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of a cell in `results.json`, and values derived from it. The comment of a
//! field is also its description in docs/results.schema.json.

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

/// Name of the sum of the stages, which is not a stage itself.
const STAMPED: &str = "traced";

/// Returns the names of the words that define a cell, in the order of the columns in results.csv.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let fields = DIMENSIONS.iter().filter(|info| info.place != Place::System);
    let fields = fields.map(|info| info.key);
    std::iter::once("under")
        .chain(fields)
        .chain(["system", "cpus"])
}

/// One combination, with its samples.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct Cell {
    /// The run that it is of, if that is one of several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Number in its boot.
    pub id: u64,
    /// Hypervisor below the guest.
    #[serde(serialize_with = "word", deserialize_with = "known_word")]
    #[schemars(schema_with = "words_of_under")]
    pub under: Under,
    /// The measured cell; fields of its own, and of `system`.
    #[serde(flatten, with = "words")]
    #[schemars(schema_with = "words::schema")]
    pub what: plan::Cell,
    /// How Linux idled: the driver and the governor of cpuidle that ran, as `none/menu`; left out
    /// where the guest is another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub idles_by: String,
    /// The idle states that cpuidle could choose from; left out where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Period of the event stream as the counter makes it, nanoseconds; 0 without event stream.
    pub event_stream_made_ns: u64,
    /// CPUs that took part.
    pub cpus: u64,
    /// Affinity of the CPU that wakes the other and measures, as MPIDR_EL1 has it; left out where
    /// the workload is not between two CPUs, or where that is not known.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "checked_texts::read_affinity"
    )]
    #[schemars(schema_with = "checked_texts::schema_of_affinity")]
    pub sender: String,
    /// Likewise of the CPU that is woken.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "checked_texts::read_affinity"
    )]
    #[schemars(schema_with = "checked_texts::schema_of_affinity")]
    pub receiver: String,
    /// Wake-ups asked for at most.
    pub iterations: u64,
    /// Passes that it has; 0 if that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes: u64,
    /// Passes that there can be.
    #[serde(skip_serializing_if = "is_zero")]
    pub passes_planned: u64,
    /// Median of each of its passes, in their order; left out if one of them is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_p50: Vec<u64>,
    /// The frequency of the core that measures, the sender's or the first CPU's, at the begin and at
    /// the end of each of its passes, Hz, 0 where a clock stood; left out where the machine does
    /// not tell it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_core_hz: Vec<[u64; 2]>,
    /// By how much that moved, or what it was differed from the run's first pass on that core, as
    /// a share of the highest; left out where it is at most 0.02.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock_moved: Option<f64>,
    /// The clock of the core that measured, by which its ticks became cycles, Hz; left out where
    /// values are no cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_hz: Option<u64>,
    /// The step of the counter as a share of the median, at most 1; left out where it is at most
    /// 0.05, not known, or no time is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_coarse: Option<f64>,
    /// Samples and what was made like them: what counters are of; 0 if that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub made: u64,
    /// Why it ended: `settled`, `samples` or `budget`; `null` if it did not, or if that
    /// is not known.
    #[serde(
        serialize_with = "optional_word",
        deserialize_with = "optional_known_word"
    )]
    #[schemars(schema_with = "words_of_end")]
    pub ended: Option<End>,
    /// Unit of its values.
    #[serde(deserialize_with = "checked_texts::read_unit")]
    #[schemars(schema_with = "checked_texts::schema_of_unit")]
    pub unit: String,
    /// The sample from end to end; `null` if it was skipped.
    pub stats: Option<Stats>,
    /// Its samples taken apart by what CPUs executed; absent where nothing looked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical: Option<Critical>,
    /// Its parts.
    pub stages: Vec<Stage>,
    /// Exits by cause.
    pub exits: Counts,
    /// Interrupts between CPUs.
    pub ipis: Counts,
    /// Polls that ended at their limit.
    pub wakes: Counts,
    /// Where the CPUs were within samples.
    pub residency: Counts,
    /// Energy of a wake-up by stated watts: a model, not a measurement; left out where none
    /// were stated, or the residency is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_model: Option<EnergyModel>,
    /// Counters that have no place of their own, by group.
    pub counters: BTreeMap<String, Counts>,
    /// Values and counts, by stage.
    pub histograms: BTreeMap<String, Vec<(u64, u64)>>,
    /// The samples themselves, by stage, if they were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub raw: BTreeMap<String, Vec<u64>>,
    /// Property that the machine would have to model for the cell to show what its wait
    /// is meant to do, and does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<String>,
    /// The program that it ran; left out where it ran none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Why it was not run.
    pub skipped: Option<String>,
}

impl Cell {
    /// Formats the number of the cell's passes: `2/4` if the cell was cut short, else `all`.
    pub fn passes_text(&self) -> String {
        match self.is_part() {
            true => format!("{}/{}", self.passes, self.passes_planned),
            false => "all".into(),
        }
    }

    /// Whether the cell was cut short, so that passes are missing.
    pub fn is_part(&self) -> bool {
        self.passes_planned > 0 && self.ended.is_none()
    }

    /// Whether the cell has fewer wake-ups than requested because they took too long.
    pub fn ran_out_of_time(&self) -> bool {
        self.ended == Some(End::Budget)
    }

    /// Returns the number of wake-ups that the cell's counters include, at least 1: the number made, or the number of
    /// samples if a log lacks it.
    pub fn counted(&self) -> u64 {
        match self.made {
            0 => self.stats.map_or(1, |stats| stats.count.max(1)),
            made => made,
        }
    }

    /// Returns a counter per sample, or 0 if the counter is missing.
    pub fn per_sample(&self, counts: &Counts, name: &str) -> f64 {
        let count = counts.get(name).copied().unwrap_or(0);
        count as f64 / self.counted() as f64
    }

    /// Returns a note if most of EL2's halts did not take the fast path in assembly, so that the figures describe
    /// another path. The cause may be a syndrome that the fast path does not handle. There is no note where slow halts
    /// are expected: they are the rule if EL2 adapts its poll time or has a neighbour to run, and frequent with Linux.
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

    /// Whether any IPI was sent. With [`plan::Wake::Elide`], an IPI is sent only to wake a CPU whose poll has already
    /// ended.
    pub fn sends_ipis(&self) -> bool {
        self.ipis.get("sent").is_some_and(|sent| *sent > 0)
    }

    /// Whether exits are counted, either by the layer below, or by the emulator, which sees each exception to EL2. If
    /// neither counts exits, a missing count does not mean 0.
    pub fn has_exit_counts(&self) -> bool {
        !self.under.is_other() || !self.exits.is_empty() || self.seen().is_some()
    }

    /// Whether `floor` is the same cell on the bare machine, which traps and injects
    /// nothing.
    pub fn is_over(&self, floor: &Self) -> bool {
        floor.under == Under::None
            && floor.what == self.what.on_bare_machine()
            && floor.cpus == self.cpus
    }

    /// Whether `other` is the same cell except for the layer below.
    pub fn is_like(&self, other: &Self) -> bool {
        other.what == self.what && other.cpus == self.cpus
    }

    /// Returns the stages of the sample.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.name != STAMPED)
    }

    /// Returns the whole sample with time stamps.
    pub fn stamped(&self) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == STAMPED)
    }

    /// Returns the ratio of the median with time stamps to the median without, which is the distortion of a figure that
    /// needs time stamps. `None` if there are no time stamps.
    pub fn distortion(&self) -> Option<f64> {
        let (with, without) = (self.stamped()?.stats.p50, self.stats?.p50);
        (without > 0).then(|| with as f64 / without as f64)
    }

    /// Returns the value of one of the words that define the cell. Empty if the results
    /// lack it, `None` if no word has this name.
    pub fn word(&self, key: &str) -> Option<String> {
        Some(match key {
            "under" => self.under.to_string(),
            "system" => self.system_text(),
            "cpus" => self.cpus.to_string(),
            _ => self.told(Info::find(key)?),
        })
    }

    /// Returns the value of a dimension. Empty if the results lack it.
    pub fn told(&self, info: &Info) -> String {
        if info.is_told(&self.what) {
            info.text(&self.what).to_string()
        } else {
            String::new()
        }
    }

    /// Returns the words of the dimensions of systems, sorted by name, like `call-by=notify,offset=1`.
    fn system_text(&self) -> String {
        let words = self.what.system();
        let words = words.map(|info| format!("{}={}", info.key, info.text(&self.what)));
        let mut words: Vec<String> = words.collect();
        words.sort_unstable();
        words.join(",")
    }

    /// Returns the samples' statistics if there are enough samples for a median. For a program, one run is enough.
    pub fn with_median(&self) -> Option<Stats> {
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
    pub fn subject(&self) -> String {
        let plan::Cell { shape, .. } = self.what;
        let table = self.table();
        match self.what.workload {
            Workload::Pingpong => table,
            other if other.is_linux() => table,
            _ => format!("{table} {shape}"),
        }
    }

    /// Returns the key of the cell's table: the workload, and whether its requests come at fixed times.
    pub fn table(&self) -> String {
        let loops = if self.what.is_open() {
            ", open loop"
        } else {
            ""
        };
        format!("{}{loops}", self.what.workload)
    }

    /// Returns the rate of requests as a share of the intended rate: 1 if the receiver keeps up. `None` if
    /// requests do not come at fixed times.
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
    parsed(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn optional_known_word<'de, W: Word, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<W>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    let word = word.map(|word| parsed(&word)).transpose();
    word.map_err(D::Error::custom)
}

/// Returns the value with this name. The error describes an unknown name.
pub fn parsed<W: Word>(word: &str) -> Result<W, String> {
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
