// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of one cell, in the order of their arrival.

use std::collections::BTreeMap;

use plan::{Cell, DIMENSIONS};
use wire::Record;

use crate::program::Program;

/// The records of one cell.
#[derive(Debug, Default)]
pub struct CellRecords {
    /// The number of the cell in its boot.
    pub id: u64,
    /// Fields of the record `cell`.
    pub fields: BTreeMap<String, String>,
    /// Statistics of the stages. The stage `total` is the whole sample.
    pub stats: Vec<Stat>,
    /// Histograms, by stage: values and counts.
    pub histograms: BTreeMap<String, Vec<(u64, u64)>>,
    /// The samples themselves, by stage.
    pub raw: BTreeMap<String, Vec<u64>>,
    /// The median of each of the cell's passes, in order. Empty if the records of a pass are missing.
    pub pass_p50: Vec<u64>,
    /// The core's frequency at the beginning and at the end of each of the cell's passes, in Hz, if the guest read it.
    /// 0 if the reading failed.
    pub core_hz: Vec<[u64; 2]>,
    /// Counters, by name.
    pub counts: BTreeMap<String, u64>,
    /// Why the cell was not run.
    pub skipped: Option<String>,
    /// The program that the cell ran.
    pub program: Option<Program>,
}

/// Statistics of one stage.
#[derive(Debug, Default)]
pub struct Stat {
    /// Name of the stage.
    pub name: String,
    /// Numbers by name: `count`, `min`, `p50`, ...
    pub values: BTreeMap<String, u64>,
}

impl CellRecords {
    /// Returns the number of the measuring CPU as text. The measuring CPU is the sender of the pair, or the first CPU.
    pub fn measuring_cpu(&self) -> &str {
        let pair = self
            .fields
            .get("pair")
            .and_then(|pair| pair.split_once(','));
        pair.map_or("0", |(sender, _)| sender)
    }

    /// Names the cell in one line.
    pub fn title(&self) -> String {
        format!("cell {} ({})", self.id, self.describe_cell())
    }

    /// Returns the words that best describe the cell.
    pub fn describe_cell(&self) -> String {
        let mut cell = Cell::default();
        // Which words to show depends on the workload. An unknown workload is ignored.
        if let Some(word) = self.fields.get("workload") {
            let _ = cell.set("workload", word);
        }
        let words = DIMENSIONS.iter().filter(|info| info.names(&cell));
        let known: Vec<&str> = words
            .filter_map(|info| Some(self.fields.get(info.key)?.as_str()))
            .collect();
        known.join(" ")
    }

    /// Returns a numeric field, or 0 if it is missing.
    pub fn number_field(&self, key: &str) -> u64 {
        let text = self.fields.get(key);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Whether passes are missing at the end.
    pub fn lacks_passes(&self) -> bool {
        self.number_field("passes_planned") > 0 && !self.fields.contains_key("ended")
    }

    /// Formats the number of the cell's passes: `pass 2 of 4`.
    pub fn passes_text(&self) -> String {
        let (passes, planned) = (
            self.number_field("passes"),
            self.number_field("passes_planned"),
        );
        format!("pass {passes} of {planned}")
    }

    /// Takes a record of `kind` that belongs to the cell. `None` if the record lacks a field that its kind requires.
    pub fn take_record(&mut self, kind: &str, record: &Record<'_>) -> Option<()> {
        match kind {
            "cell" => self.fields = text_fields(record),
            "more" => self.fields.extend(text_fields(record)),
            "stat" => {
                let values = number_fields(record);
                values.contains_key("count").then_some(())?;
                let name = text_field(record, "name")?;
                self.stats.push(Stat { name, values });
            }
            "hist" => {
                let buckets = record.get("b")?.split_terminator(',').map(|bucket| {
                    let (value, count) = bucket.split_once(':')?;
                    Some((value.parse().ok()?, count.parse().ok()?))
                });
                let buckets = buckets.collect::<Option<Vec<_>>>()?;
                let name = text_field(record, "name").unwrap_or_else(|| "total".into());
                self.histograms.entry(name).or_default().extend(buckets);
            }
            "raw" => {
                let values = record.get("v")?.split_terminator(',');
                let values = values.map(|value| value.parse().ok());
                let values = values.collect::<Option<Vec<u64>>>()?;
                let name = text_field(record, "name").unwrap_or_else(|| "total".into());
                self.raw.entry(name).or_default().extend(values);
            }
            "count" => self.counts.extend(number_fields(record)),
            "clock" => {
                let passes = record.get("core_hz")?.split_terminator(',').map(|pass| {
                    let (begin, end) = pass.split_once(':')?;
                    Some([begin.parse().ok()?, end.parse().ok()?])
                });
                self.core_hz = passes.collect::<Option<Vec<_>>>()?;
            }
            "output" => {
                let program = self.program.get_or_insert_default();
                if let Some(note) = text_field(record, "note") {
                    program.note = note;
                }
                if let Some(cut) = record.number("cut") {
                    program.cut = Some(cut);
                    program.output += "\n[...]\n";
                }
                program.output += &text_field(record, "text").unwrap_or_default();
            }
            "skipped" => self.skipped = Some(text_field(record, "why")?),
            _ => {}
        }
        Some(())
    }

    /// Takes the fields about passes from `done`, which is the last record of a block.
    pub fn read_passes(&mut self, done: &Record<'_>) {
        for key in ["passes", "passes_planned", "made", "ended"] {
            let value = text_field(done, key).map(|value| (key.into(), value));
            self.fields.extend(value);
        }
    }

    /// Computes the median of the cell's last pass, from the values that were added since `before`, the cell's state
    /// after the previous pass.
    pub fn note_pass(&mut self, before: Option<&Self>) {
        let nothing = Self::default();
        let before = before.unwrap_or(&nothing);
        let earlier = before.number_field("passes");
        let follows = self.number_field("passes") == earlier + 1;
        if !follows || before.pass_p50.len() as u64 != earlier {
            return;
        }
        let counts = |cell: &Self| cell.histograms.get("total").cloned().unwrap_or_default();
        if let Some(median) = median_since(&counts(self), &counts(before)) {
            self.pass_p50.clone_from(&before.pass_p50);
            self.pass_p50.push(median);
        }
    }

    /// Whether the first and the last record agree in the fields that both have. If the end of a boot and the
    /// beginning of the next one are lost, the sequence number and the id could match by chance.
    pub fn agrees_with(&self, done: &Record<'_>) -> bool {
        text_fields(done)
            .iter()
            .all(|(key, value)| self.fields.get(key).is_none_or(|first| first == value))
    }

    /// Whether the cell has the times that the CPUs spent in each state within samples.
    pub fn has_state_times(&self) -> bool {
        self.counts.contains_key("stamped.ticks")
    }

    /// Describes a sum that is wrong, if any. The times in the states must add up to the samples, the times at EL2 by
    /// cause must add up to the time at EL2, and the samples must be those with time stamps.
    pub fn disagreement(&self) -> Option<String> {
        let count = |name: &str| self.counts.get(name).copied();
        let whole = count("stamped.ticks")?;
        let sum = |group: &str| -> u64 {
            let named = self.counts.iter();
            let of_group = named.filter(|(name, _)| name.starts_with(group));
            of_group.map(|(_, ticks)| ticks).sum()
        };
        let (parts, causes) = (sum("res."), sum("time."));
        let el2 = count("res.el2").unwrap_or(0);
        let stamped = self.stats.iter().find(|stat| stat.name == "traced");
        let stamped = stamped.and_then(|stat| stat.values.get("count").copied());
        let told = count("stamped.samples").unwrap_or(0) + count("stamped.lost").unwrap_or(0);
        let why = if parts != whole {
            format!("its parts are {parts} ticks, its samples with stamps {whole}")
        } else if causes != el2 {
            format!("it was at EL2 for {el2} ticks, by cause for {causes}")
        } else if stamped.is_some_and(|samples| samples != told) {
            format!(
                "{told} samples have parts, {} have stamps",
                stamped.unwrap_or(0)
            )
        } else {
            return None;
        };
        Some(format!("{}: {why}", self.title()))
    }

    /// Whether the cell has samples, or a reason why there are none.
    pub fn has_result(&self) -> bool {
        self.skipped.is_some() || self.stats.iter().any(|stat| stat.name == "total")
    }
}

/// Returns the median of the values that are in the histogram `now` but not in `before`.
fn median_since(now: &[(u64, u64)], before: &[(u64, u64)]) -> Option<u64> {
    let earlier: BTreeMap<u64, u64> = before.iter().copied().collect();
    let new = |&(value, count): &(u64, u64)| {
        let earlier = earlier.get(&value).copied().unwrap_or(0);
        (value, count.saturating_sub(earlier))
    };
    let count: u64 = now.iter().map(|bucket| new(bucket).1).sum();
    hist::nearest_rank(now.iter().map(new), count, 500)
}

/// Returns the text of a field.
pub fn text_field(record: &Record<'_>, key: &str) -> Option<String> {
    Some(record.text(key)?.to_string())
}

/// Returns every field as text.
pub fn text_fields(record: &Record<'_>) -> BTreeMap<String, String> {
    let fields = record.fields();
    fields
        .map(|(key, value)| (key.into(), wire::Unescape(value).to_string()))
        .collect()
}

fn number_fields(record: &Record<'_>) -> BTreeMap<String, u64> {
    let fields = record.fields().filter(|&(key, _)| key != "id");
    fields
        .filter_map(|(key, value)| Some((key.into(), value.parse().ok()?)))
        .collect()
}
