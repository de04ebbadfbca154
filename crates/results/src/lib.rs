// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run found: `results.json`, schema 1, and `results.csv`; `docs/results.md`
//! tells every field.
//!
//! [`records`] collects what a boot sends, [`capture`] finds the boots of a log.
//! [`Results`] is made from them, and written by [`Results::to_json`] and [`csv()`].
//! [`merge`] puts runs together, [`compare`] tells whether one is better than
//! another, [`schema`] describes the file for programs.
//!
//! Fields may be added to the schema and are never renamed.

#![forbid(unsafe_code)]

pub mod capture;
pub mod clock;
pub mod compare;
mod energy;
#[cfg(any(test, feature = "samples"))]
pub mod goldens;
pub mod json;
pub mod merge;
mod path;
pub mod records;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod schema;
mod spreadsheet;
mod types;
mod words;

pub use energy::{EnergyModel, Watts};
pub use path::{Critical, Work};
pub use spreadsheet::csv;
pub use types::{
    Build, Cell, Counts, Emulator, Machine, Origin, Parameter, Results, Stage, Stats, keys,
};
pub use words::help;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use plan::{DIMENSIONS, Place, Under, Word, Workload};
use serde_json::Value;

use records::Records;

/// Fields of the records `boot` and `machine` that have a place of their own.
const MACHINE: [&str; 9] = [
    "under",
    "version",
    "midr",
    "cpus",
    "cntfrq_hz",
    "core_hz",
    "gic",
    "list_registers",
    "firmware",
];
/// The unit of samples that may contain time in which every CPU was idle, where the
/// counter counts instructions and skips such time.
pub const VIRTUAL: &str = "vticks";
/// Version of the schema.
const SCHEMA: u32 = 1;
/// The unit of samples that count instructions.
pub const INSNS: &str = "insns";

impl Results {
    /// The results of no boot yet.
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

    /// Adds what a boot under `under` reported. The machine is described by
    /// the first boot that describes one. What counts something else than the
    /// boots before is left out: one table has one unit.
    pub fn add(&mut self, under: Option<Under>, records: &Records) {
        if self.unit.is_empty() {
            self.describe(records);
        }
        let name = under.map_or("something unknown", Word::name);
        let unit = records.unit.as_ref().map_or("", |(unit, _)| unit);
        if unit.is_empty() || unit == self.unit {
            let first_hz = clock::first(records.cells.iter().map(|cell| cell.core_hz.as_slice()));
            for cell in &records.cells {
                self.problems.extend(cell.disagreement());
                match convert(under, unit, first_hz, cell) {
                    Ok(cell) => self.cells.push(cell),
                    Err(why) => self.damaged.push(format!("{}: {why}", cell.title())),
                }
            }
        } else {
            self.problems.push(format!(
                "a boot under {name} counts {unit}, those before it {}: its cells are left out; \
                 run or capture it apart",
                self.unit
            ));
        }
        let missing = records.missing();
        // Of soaks and checks no cells are expected.
        let measures = records.plan.is_some() || !records.cells.is_empty();
        let cut = measures && !records.ended;
        self.incomplete |= cut || missing.is_some();
        self.missing
            .extend(missing.map(|text| format!("under {name}: {text}")));
        self.damaged.extend(records.damaged.iter().cloned());
        self.problems.extend(records.problems.iter().cloned());
        self.notes.extend(records.notes.iter().cloned());
    }

    /// Whether there is anything to show, if only what was lost.
    pub fn has_cells(&self) -> bool {
        !self.cells.is_empty() || !self.damaged.is_empty()
    }

    /// The text of `results.json`.
    pub fn to_json(&self) -> Result<String> {
        json::text(self).context("results.json")
    }

    fn describe(&mut self, records: &Records) {
        let field = |key: &str| {
            records
                .machine
                .get(key)
                .map(String::as_str)
                .unwrap_or_default()
        };
        let machine = &mut self.machine;
        machine.midr = field("midr").into();
        machine.cpus = field("cpus").parse().unwrap_or(0);
        machine.cntfrq_hz = field("cntfrq_hz").parse().unwrap_or(0);
        machine.core_hz = field("core_hz").parse().unwrap_or(0);
        machine.gic = field("gic").into();
        machine.list_registers = field("list_registers").parse().unwrap_or(0);
        machine.firmware = field("firmware").into();
        let features = records.features.iter();
        // What the machine is said to have besides what has a place of its own.
        let more = records
            .machine
            .iter()
            .filter(|(name, _)| !MACHINE.contains(&name.as_str()));
        machine.features = features
            .chain(more)
            .map(|(name, text)| (name.clone(), value(text)))
            .collect();
        for (name, probe) in &records.probes {
            self.fidelity.insert(name.clone(), value(&probe.value));
            if !probe.detail.is_empty() {
                self.fidelity_details
                    .insert(name.clone(), probe.detail.clone());
            }
        }
        if let Some((unit, how)) = &records.unit {
            (self.unit, self.unit_how) = (unit.clone(), how.clone());
        }
    }
}

/// A text as the JSON value that it looks like.
fn value(text: &str) -> Value {
    match (text, text.parse::<u64>()) {
        ("true", _) => Value::Bool(true),
        ("false", _) => Value::Bool(false),
        (_, Ok(number)) => number.into(),
        _ => text.into(),
    }
}

/// A cell as its records have it; `first_hz` is the core's frequency at the first pass of its boot.
///
/// # Errors
/// Names the word that is not known.
fn convert(
    under: Option<Under>,
    unit: &str,
    first_hz: Option<u64>,
    cell: &records::Cell,
) -> Result<Cell, String> {
    let word = |key: &str| cell.fields.get(key).cloned().unwrap_or_default();
    let number = |key: &str| word(key).parse().unwrap_or(0);
    let total = cell.stats.iter().find(|stat| stat.name == "total");
    let stages = cell.stats.iter().filter(|stat| stat.name != "total");
    let mut groups = grouped(&cell.counts);
    if !cell.tells_parts() {
        // Of logs from before that: not of the samples, and of other code than theirs.
        groups.retain(|name, _| !matches!(name.as_str(), "res" | "time"));
    }
    let mut group = |name: &str| groups.remove(name).unwrap_or_default();
    let told = DIMENSIONS.iter().map(|info| {
        let field = match info.place {
            Place::Always | Place::Unusual => words::field(info),
            Place::System => format!("sys.{}", info.key),
        };
        (info.key.to_owned(), word(&field))
    });
    let what = words::read(told)?;
    Ok(Cell {
        run: String::new(),
        id: cell.id,
        under: match cell.fields.get("under") {
            None => under.ok_or("under: it is not said")?,
            Some(under) => {
                Under::parse(under).ok_or_else(|| format!("under: there is no `{under}`"))?
            }
        },
        unit: unit_of(what.workload, unit).into(),
        what,
        event_stream_made_ns: number("event_stream_made_ns"),
        cpus: number("cpus"),
        iterations: number("iterations"),
        passes: number("passes"),
        passes_planned: number("passes_planned"),
        pass_p50: cell.pass_p50.clone(),
        pass_core_hz: cell.core_hz.clone(),
        core_clock_moved: clock::moved(first_hz, &cell.core_hz),
        made: number("made"),
        ended: match cell.fields.get("ended") {
            None => None,
            Some(ended) => Some(types::parsed(ended).map_err(|why| format!("ended: {why}"))?),
        },
        stats: total.map(stats),
        critical: None,
        stages: stages.map(stage).collect(),
        exits: group("exit"),
        ipis: group("ipi"),
        wakes: group("wake"),
        // Where samples count instructions, those with stamps are others than those shown.
        residency: match unit {
            INSNS => Counts::new(),
            _ => group("res"),
        },
        energy_model: None,
        counters: groups,
        histograms: cell.histograms.clone(),
        raw: cell.raw.clone(),
        not_modelled: word("not_modelled")
            .split_terminator(',')
            .map(String::from)
            .collect(),
        skipped: cell.skipped.clone(),
    })
}

/// What values of a workload count, where a boot counts `unit`. Time in which every CPU
/// was idle is no instruction.
fn unit_of(workload: Workload, unit: &str) -> &str {
    match unit {
        "insns" if workload.has_idle_time() => VIRTUAL,
        unit => unit,
    }
}

fn stage(stat: &records::Stat) -> Stage {
    Stage {
        name: stat.name.clone(),
        stats: stats(stat),
    }
}

fn stats(stat: &records::Stat) -> Stats {
    let number = |key: &str| stat.values.get(key).copied().unwrap_or(0);
    let count = number("count");
    Stats {
        count,
        min: number("min"),
        p50: number("p50"),
        p90: number("p90"),
        p99: number("p99"),
        p999: number("p999"),
        max: number("max"),
        mean: number("sum") as f64 / count.max(1) as f64,
    }
}

/// Counters by what stands before the first dot of their names.
fn grouped(counts: &BTreeMap<String, u64>) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut groups: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (name, &count) in counts {
        let (group, name) = name.split_once('.').unwrap_or(("", name));
        groups
            .entry(group.into())
            .or_default()
            .insert(name.into(), count);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Collector;
    use crate::samples::{in_cycles, lines_in, results};

    #[test]
    fn the_schema_has_the_promised_names() {
        let json = serde_json::to_value(results()).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["machine"]["cntfrq_hz"], 1_000_000_000);
        assert_eq!(json["machine"]["emulator"], Value::Null);
        assert_eq!(json["machine"].get("core_hz"), None);
        let [skipped, cell] = json["cells"].as_array().unwrap().as_slice() else {
            panic!("two cells");
        };
        assert_eq!(skipped["skipped"], "one CPU only");
        assert_eq!(skipped["stats"], Value::Null);
        assert_eq!(cell["unit"], "insns");
        assert_eq!(cell["skipped"], Value::Null);
        assert_eq!(cell["stats"]["mean"], 30.0);
        assert_eq!(cell["exits"]["wfi"], 8);
        assert_eq!(cell["ipis"]["sent"], 8);
        for name in [
            "under",
            "poll_limit_us",
            "host_poll_us",
            "stages",
            "wakes",
            "residency",
        ] {
            assert!(cell.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn cycles_bring_the_clock_of_their_core() {
        let results = in_cycles();
        let json = serde_json::to_value(&results).unwrap();
        assert_eq!(json["machine"]["core_hz"], 2_600_000_000_u64);
        assert_eq!(json["machine"]["features"].get("core_hz"), None);
        let memory = &json["machine"]["emulator"]["parameters"]["memory"];
        assert_eq!(
            (&memory["value"], &memory["source"]),
            (&"60 ns".into(), &"chosen".into())
        );
        assert_eq!(json["cells"][1]["unit"], "cycles");
        let table = csv(&results).unwrap();
        assert!(
            table.lines().nth(2).unwrap().contains(",cycles,"),
            "{table}"
        );
        let again: Results = serde_json::from_value(json).unwrap();
        assert_eq!(again.machine, results.machine);
    }

    #[test]
    fn a_boot_that_counts_something_else_is_left_out_and_named() {
        let mut results = results();
        let mut other = Collector::default();
        for line in lines_in("cycles", "25000000", None) {
            other.feed(&line);
        }
        let cells = results.cells.len();
        results.add(Some(Under::None), &other.finish());
        assert_eq!(results.cells.len(), cells);
        assert!(results.cells.iter().all(|cell| cell.unit != "cycles"));
        let problem = &results.problems[0];
        assert!(
            problem.contains("under none counts cycles, those before it insns"),
            "{problem}"
        );
    }

    /// A cell that was in three places for 60 ticks, of two samples.
    fn with_parts() -> records::Cell {
        let counts = [
            ("stamped.samples", 2),
            ("stamped.lost", 0),
            ("stamped.ticks", 60),
            ("res.run", 20),
            ("res.poll", 0),
            ("res.wfi", 30),
            ("res.el2", 10),
            ("time.sgi", 4),
            ("time.irq", 6),
        ];
        let samples = |name: &str| records::Stat {
            name: name.into(),
            values: [("count".into(), 2)].into(),
        };
        records::Cell {
            fields: [("wait".into(), "wfi".into())].into(),
            stats: vec![samples("total"), samples("traced")],
            counts: counts.map(|(name, count)| (name.into(), count)).into(),
            ..records::Cell::default()
        }
    }

    fn results_of(cell: records::Cell, unit: &str) -> Results {
        let mut results = Results::default();
        let records = Records {
            unit: Some((unit.into(), String::new())),
            cells: vec![cell],
            ended: true,
            ..Records::default()
        };
        results.add(Some(Under::Rouse), &records);
        results
    }

    #[test]
    fn parts_that_do_not_add_up_are_a_problem_that_is_named() {
        let whole = results_of(with_parts(), "ticks");
        assert!(whole.problems.is_empty(), "{:?}", whole.problems);
        assert_eq!(whole.cells[0].residency["wfi"], 30);
        for (name, count, said) in [
            (
                "res.run",
                21,
                "its parts are 61 ticks, its samples with stamps 60",
            ),
            ("time.sgi", 3, "at EL2 for 10 ticks, by cause for 9"),
            ("stamped.lost", 1, "3 samples have parts, 2 have stamps"),
        ] {
            let mut cell = with_parts();
            cell.counts.insert(name.into(), count);
            let problems = results_of(cell, "ticks").problems;
            assert!(
                matches!(problems.as_slice(), [one] if one.contains(said)),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn parts_of_other_code_than_the_samples_are_not_their_residency() {
        let insns = &results_of(with_parts(), "insns").cells[0];
        assert!(insns.residency.is_empty());
        assert_eq!(insns.counters["res"]["wfi"], 30);
        // Before parts were of samples they were of all between them too.
        let mut old = with_parts();
        old.counts.retain(|name, _| !name.starts_with("stamped."));
        let old = &results_of(old, "ticks").cells[0];
        assert!(old.residency.is_empty() && !old.counters.contains_key("time"));
    }

    #[test]
    fn counters_are_of_all_that_was_made() {
        let mut cell = results().cells.remove(1);
        assert_eq!(cell.per_sample(&cell.exits, "wfi"), 2.0);
        cell.made = 5;
        assert_eq!(cell.per_sample(&cell.exits, "wfi"), 1.6);
    }

    #[test]
    fn what_may_contain_idle_time_is_never_called_instructions() {
        let units = Workload::ALL.iter().map(|&workload| {
            let unit = unit_of(workload, "insns");
            assert_eq!(unit == VIRTUAL, workload.has_idle_time(), "{workload}");
            assert_eq!(unit_of(workload, "cycles"), "cycles");
            unit
        });
        assert_eq!(units.filter(|unit| *unit == "insns").count(), 4);
    }

    #[test]
    fn values_keep_their_type() {
        assert_eq!(value("true"), Value::Bool(true));
        assert_eq!(value("2"), Value::from(2));
        assert_eq!(value("not-run"), Value::from("not-run"));
    }

    #[test]
    fn the_spreadsheet_has_a_row_per_cell() {
        let text = csv(&results()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("under,workload,shape,wait,"));
        assert!(lines[2].starts_with("rouse,pingpong,one,wfi,none,inject,ipi,0,"));
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    }
}
