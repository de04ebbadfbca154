// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the records of boots to results.

use std::collections::BTreeMap;

use plan::{DIMENSIONS, Place, Under, Word};
use serde_json::Value;

use crate::program::Program;
use crate::records::{CellRecords, Records, Stat};
use crate::{
    Cell, Counts, INSNS, Results, Stage, Stats, VIRTUAL, cell, checked_texts, clock, core_clocks,
    counter, linux_idle, percentile_rounding, words,
};

/// Fields of the records `boot` and `machine` that have their own fields in results.
const MACHINE: [&str; 12] = [
    "under",
    "version",
    "midr",
    "cpus",
    "cntfrq_hz",
    "counter_step",
    "core_hz",
    "gic",
    "list_registers",
    "firmware",
    "hypervisor",
    // Each cell already has this field.
    "atomics",
];
impl Results {
    /// Adds the records of a boot under `under`. The description of the machine comes from the first boot that
    /// has one. Leaves out cells whose unit differs from the earlier boots' unit, because a table has only one
    /// unit.
    pub fn add(&mut self, under: Option<Under>, records: &Records) {
        if self.unit.is_empty() {
            self.set_description(records);
        }
        let name = under.map_or("something unknown", Word::name);
        let unit = records.unit.as_ref().map_or("", |(unit, _)| unit);
        if unit.is_empty() || unit == self.unit {
            let first_hz = clock::first_hz(&records.cells);
            for cell in &records.cells {
                self.problems.extend(cell.disagreement());
                let first_hz = first_hz.get(cell.measuring_cpu()).copied();
                match convert_cell(under, unit, first_hz, cell) {
                    Ok(mut converted) => {
                        let cycles_hz = records.cycles_hz(cell);
                        let per_bucket =
                            percentile_rounding::units_per_tick(cycles_hz, self.machine.cntfrq_hz);
                        converted.round_percentiles(per_bucket);
                        let p50 = converted.stats.map(|stats| stats.p50);
                        let hands_over = self.machine.handed_over.contains_key(linux_idle::GUEST);
                        converted.note_unmodelled(hands_over);
                        self.notes.extend(converted.slow_halts());
                        self.notes.extend(converted.late_polls_note());
                        let coarse = |p50| counter::coarse_step_share(records, cycles_hz, p50);
                        self.cells.push(Cell {
                            cycles_hz,
                            counter_coarse: p50.and_then(coarse),
                            ..converted
                        });
                    }
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
        let missing = records.missing_parts();
        // Boots that only check or soak have no cells.
        let measures = records.plan.is_some() || !records.cells.is_empty();
        let cut = measures && !records.ended;
        self.incomplete |= cut || missing.is_some();
        self.missing
            .extend(missing.map(|text| format!("under {name}: {text}")));
        self.damaged.extend(records.damaged.iter().cloned());
        self.problems.extend(records.problems.iter().cloned());
        // All boots of a machine have the same notes, so each note is added once.
        for note in &records.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        self.serrors.add_counts(&records.serrors);
        core_clocks::add_boot(
            &mut self.machine.core_clocks,
            core_clocks::clocks_of_boot(&records.core_clocks),
        );
    }

    fn set_description(&mut self, records: &Records) {
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
        machine.counter_step = field("counter_step").parse().unwrap_or(0);
        machine.core_hz = field("core_hz").parse().unwrap_or(0);
        machine.gic = field("gic").into();
        machine.list_registers = field("list_registers").parse().unwrap_or(0);
        machine.firmware = field("firmware").into();
        machine.hypervisor = field("hypervisor").into();
        let features = records.features.iter();
        // All fields that have no counterpart in results become features.
        let more = records
            .machine
            .iter()
            .filter(|(name, _)| !MACHINE.contains(&name.as_str()));
        machine.features = features
            .chain(more)
            .map(|(name, text)| (name.clone(), json_value(text)))
            .collect();
        for (name, probe) in &records.probes {
            self.fidelity.insert(name.clone(), json_value(&probe.value));
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

/// Converts a text to a JSON value of the type that the text looks like.
fn json_value(text: &str) -> Value {
    match (text, text.parse::<u64>()) {
        ("true", _) => Value::Bool(true),
        ("false", _) => Value::Bool(false),
        (_, Ok(number)) => number.into(),
        _ => text.into(),
    }
}

/// Converts a cell's records. `first_hz` is the frequency of the cell's core in the first pass of the boot.
///
/// # Errors
/// Names the unknown word.
fn convert_cell(
    under: Option<Under>,
    unit: &str,
    first_hz: Option<u64>,
    cell: &CellRecords,
) -> Result<Cell, String> {
    let word = |key: &str| cell.fields.get(key).cloned().unwrap_or_default();
    let number = |key: &str| word(key).parse().unwrap_or(0);
    let total = cell.stats.iter().find(|stat| stat.name == "total");
    let stages = cell.stats.iter().filter(|stat| stat.name != "total");
    let mut groups = group_counts(&cell.counts);
    if !cell.has_state_times() {
        // In old logs, these counters cover more than the samples, and were counted by different code.
        groups.retain(|name, _| !matches!(name.as_str(), "res" | "time"));
    }
    let mut group = |name: &str| groups.remove(name).unwrap_or_default();
    let told = DIMENSIONS.iter().map(|info| {
        let field = match info.place {
            Place::Always | Place::Unusual => words::field_name(info),
            Place::System => format!("sys.{}", info.key),
        };
        (info.key.to_owned(), word(&field))
    });
    let what = words::read_cell(told)?;
    Ok(Cell {
        run: String::new(),
        id: cell.id,
        under: match cell.fields.get("under") {
            None => under.ok_or("under: it is not said")?,
            Some(under) => cell::parse_word(under).map_err(|why| format!("under: {why}"))?,
        },
        unit: unit_of(&what, unit).into(),
        what,
        idles_by: word("idles_by"),
        idle_states: linux_idle::parse_states(&word("idle_states"))?,
        event_stream_made_ns: number("event_stream_made_ns"),
        cpus: number("cpus"),
        sender: checked_texts::parse_affinity(&word("sender"))?,
        receiver: checked_texts::parse_affinity(&word("receiver"))?,
        iterations: number("iterations"),
        passes: number("passes"),
        passes_planned: number("passes_planned"),
        pass_p50: cell.pass_p50.clone(),
        pass_core_hz: cell.core_hz.clone(),
        core_clock_moved: clock::frequency_shift(first_hz, &cell.core_hz),
        cycles_hz: None,
        counter_coarse: None,
        made: number("made"),
        ended: match cell.fields.get("ended") {
            None => None,
            Some(ended) => Some(cell::parse_word(ended).map_err(|why| format!("ended: {why}"))?),
        },
        stats: total.map(stats_from_stat),
        critical: None,
        stages: stages.map(stage_from_stat).collect(),
        exits: group("exit"),
        ipis: group("ipi"),
        wakes: group("wake"),
        // If values count instructions, the samples with time stamps executed other instructions than the samples that
        // are shown.
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
        program: cell.program.clone().map(Program::with_figures),
        skipped: cell.skipped.clone(),
    })
}

/// Returns the unit of a cell's values in a boot that counts in `unit`. If all CPUs may be idle at once, the values are
/// not instruction counts.
fn unit_of<'u>(cell: &plan::Cell, unit: &'u str) -> &'u str {
    match unit {
        "insns" if cell.has_idle_time() => VIRTUAL,
        unit => unit,
    }
}

fn stage_from_stat(stat: &Stat) -> Stage {
    Stage {
        name: stat.name.clone(),
        stats: stats_from_stat(stat),
    }
}

fn stats_from_stat(stat: &Stat) -> Stats {
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

/// Groups counters by the part of their names before the first dot.
fn group_counts(counts: &BTreeMap<String, u64>) -> BTreeMap<String, BTreeMap<String, u64>> {
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
mod tests;
