// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the records of one boot. docs/records.md lists the kinds of records.
//!
//! The console may lose or damage text, so a block counts either completely or not at all: it must have every sequence
//! number, and as many records as it declares. A cell has a block after each of its passes; the newest complete one
//! counts.

mod boot;
mod cell;

use std::collections::BTreeMap;

use foreign::Quoted;
use wire::{Damage, Record};

use crate::bounds::Numbers;
use crate::{Serrors, checked_texts};

pub use boot::{BootProgress, ClockRecords, Probe, Records, Size};
pub use cell::{CellRecords, Stat};
use cell::{text_field, text_fields};

/// Prefix of record kinds in a block whose cell still has passes to come.
const PART: &str = "part-";
/// The kinds of records in blocks.
const BLOCK: [&str; 10] = [
    "cell", "more", "stat", "hist", "raw", "count", "clock", "skipped", "output", "done",
];

/// A block whose end has not arrived yet.
#[derive(Debug, Default)]
struct OpenBlock {
    /// Whether the cell has more passes to come.
    part: bool,
    cell: CellRecords,
    records: u64,
    spoilt: bool,
}

/// Why our program on another kernel has given up, according to its last record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The program can't execute the request.
    Refused(String),
    /// The program has failed.
    Failed(String),
}

/// Collects records from lines.
#[derive(Debug, Default)]
pub struct Collector {
    /// Why the program has given up, until a caller takes the reason.
    pub given_up: Option<GivenUp>,
    records: Records,
    block: Option<OpenBlock>,
    /// Incomplete blocks: the number of each block's cell, and its title.
    spoilt: Vec<(Option<u64>, String)>,
    expected: u64,
    numbers: Numbers,
    /// The progress that was reported last.
    pub step: BootProgress,
    /// The description of the cell that was run last.
    pub at: String,
}

impl Collector {
    /// Reads a line of the console. Returns `false` if it is not a record.
    pub fn feed(&mut self, line: &str) -> bool {
        match Record::parse(line) {
            Err(Damage::NotARecord) => return false,
            // The missing sequence number will show that this record is lost.
            Err(Damage::Checksum | Damage::Form) => {}
            // Such a record does not depend on earlier ones, so it counts even if others were lost before it.
            Ok(record) if matches!(record.kind, "refused" | "failed") => {
                let why = text_field(&record, "why").unwrap_or_default();
                self.given_up = Some(match record.kind {
                    "refused" => GivenUp::Refused(why),
                    _ => GivenUp::Failed(why),
                });
            }
            Ok(record) => {
                self.records.begun = true;
                self.check_sequence(record.seq);
                match self.numbers.check_record(&record) {
                    Ok(()) => self.take_record(&record),
                    Err(why) => self.refuse_record(&record, &why),
                }
            }
        }
        true
    }

    /// Returns the collected records, and lists the records that must have been lost.
    pub fn finish(mut self) -> Records {
        // A block cut short by the end of the boot is not damaged.
        let on_its_way = |block: &mut OpenBlock| !block.spoilt;
        if self.records.ended || self.block.take_if(on_its_way).is_none() {
            self.abandon_block();
        }
        self.report_damaged();
        // A cell that ends early is reported early, so the cells are not in order.
        self.records.cells.sort_by_key(|cell| cell.id);
        if self.records.begun && !self.records.ended {
            let last = self.expected.saturating_sub(1);
            self.records
                .problems
                .push(format!("the records stop after number {last}"));
        }
        self.records
    }

    /// Reports damaged blocks: their cells are lost, or lack passes. Does not report a block if a newer block of the
    /// same cell is complete.
    fn report_damaged(&mut self) {
        for (id, title) in std::mem::take(&mut self.spoilt) {
            let records = &mut self.records;
            match records.cells.iter().find(|cell| Some(cell.id) == id) {
                None if !records.damaged.contains(&title) => records.damaged.push(title),
                Some(cell) if cell.lacks_passes() => {
                    let problem = format!(
                        "{title}: newer records of it are damaged; {} is what arrived whole",
                        cell.passes_text()
                    );
                    if !records.problems.contains(&problem) {
                        records.problems.push(problem);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the size of the plan, if it has been reported.
    pub const fn plan(&self) -> Option<Size> {
        self.records.plan
    }

    /// Returns the counts of the soak so far.
    pub const fn soak(&self) -> &BTreeMap<String, u64> {
        &self.records.soak
    }

    /// Whether a record with sequence number `seq` must belong to a later boot.
    pub fn is_over_before(&self, seq: u64) -> bool {
        self.records.begun && (self.records.ended || seq < self.expected)
    }

    fn check_sequence(&mut self, seq: u64) {
        let expected = self.expected;
        self.expected = seq.saturating_add(1);
        if seq == expected {
            return;
        }
        if let Some(block) = &mut self.block {
            block.spoilt = true;
        }
        self.records.problems.push(match seq.checked_sub(expected) {
            Some(1) => format!("record {expected} is missing or damaged"),
            Some(_) => format!("records {expected} to {} are missing or damaged", seq - 1),
            None => format!("record {seq} comes after record {}", expected - 1),
        });
    }

    /// Leaves out a record whose numbers exceed their bounds, as if it were damaged.
    fn refuse_record(&mut self, record: &Record<'_>, why: &str) {
        if let Some(block) = &mut self.block {
            block.spoilt = true;
        }
        let (number, kind) = (record.seq, Quoted::new(record.kind));
        let problems = &mut self.records.problems;
        problems.push(format!("record {number} ({kind}) is damaged: {why}"));
    }

    fn take_record(&mut self, record: &Record<'_>) {
        let (part, kind) = match record.kind.strip_prefix(PART) {
            Some(kind) => (true, kind),
            None => (false, record.kind),
        };
        // All records of a block must agree on whether more passes follow.
        if let Some(block) = &mut self.block
            && BLOCK.contains(&kind)
        {
            block.spoilt |= block.part != part && kind != "cell";
        }
        match kind {
            "cell" => self.begin_block(record, part),
            "done" => self.end_block(record),
            "more" | "stat" | "hist" | "raw" | "count" | "clock" | "skipped" | "output" => {
                self.continue_block(kind, record);
            }
            kind => {
                if let Some(block) = &mut self.block {
                    block.records += 1;
                }
                self.take_other_record(kind, record);
            }
        }
    }

    fn take_other_record(&mut self, kind: &str, record: &Record<'_>) {
        let name = || text_field(record, "name").unwrap_or_default();
        let value = |key| text_field(record, key).unwrap_or_default();
        let records = &mut self.records;
        match kind {
            "boot" => records.machine.extend(text_fields(record)),
            "machine" => records.machine.extend(text_fields(record)),
            "feature" => drop(records.features.insert(name(), value("value"))),
            "probe" => {
                let (value, detail) = (value("value"), value("detail"));
                records.probes.insert(name(), Probe { value, detail });
            }
            "core-clock" => {
                let known = record.number("cpu").unwrap_or(0);
                let clock = records.core_clocks.entry(known).or_default();
                clock.affinity = value("affinity");
                for (key, hertz) in [
                    ("begin_hz", &mut clock.begin_hz),
                    ("end_hz", &mut clock.end_hz),
                    ("cycles_hz", &mut clock.cycles_hz),
                ] {
                    *hertz = record.number(key).or(*hertz);
                }
            }
            "unit" => match checked_texts::parse_unit(&value("unit")) {
                Ok(unit) => records.unit = Some((unit.into(), value("how"))),
                Err(why) => records.problems.push(why),
            },
            "soak" => drop(
                records
                    .soak
                    .insert(name(), record.number("count").unwrap_or(0)),
            ),
            "serrors" => {
                let number = |key| record.number(key).unwrap_or(0);
                records.serrors = Serrors {
                    left: number("left"),
                    corrected: number("corrected"),
                    restartable: number("restartable"),
                };
            }
            "note" => records.notes.push(value("text")),
            "plan" => {
                let number = |key| record.number(key).unwrap_or(0);
                records.plan = Some(Size {
                    cells: number("cells"),
                    skipped: number("skipped"),
                    passes: number("passes"),
                    iterations: number("iterations"),
                    cell_ms: number("cell_ms"),
                    guess_us: number("guess_us"),
                });
                self.step.of = number("cells").saturating_mul(number("passes"));
            }
            "progress" => {
                let number = |key| record.number(key).unwrap_or(0);
                self.step = BootProgress {
                    done: number("done"),
                    of: number("of"),
                    done_us: number("done_us"),
                    ended: false,
                };
                self.at = value("cell");
            }
            "end" => records.ended = true,
            // A newer version may write other kinds, which this reader ignores.
            _ => {}
        }
    }

    fn begin_block(&mut self, record: &Record<'_>, part: bool) {
        self.abandon_block();
        let id = record.number("id").unwrap_or(0);
        let cell = CellRecords {
            id,
            ..CellRecords::default()
        };
        self.block = Some(OpenBlock {
            part,
            cell,
            ..OpenBlock::default()
        });
        self.continue_block("cell", record);
    }

    fn continue_block(&mut self, kind: &str, record: &Record<'_>) {
        let id = record.number("id");
        match &mut self.block {
            Some(block) if Some(block.cell.id) == id => {
                block.records += 1;
                block.spoilt |= block.cell.take_record(kind, record).is_none();
            }
            _ => {
                self.abandon_block();
                self.note_lost_cell(id);
            }
        }
    }

    fn end_block(&mut self, record: &Record<'_>) {
        let id = record.number("id");
        match self.block.take() {
            Some(mut block) if Some(block.cell.id) == id => {
                block.cell.read_passes(record);
                let whole = !block.spoilt
                    && record.number("records") == Some(block.records + 1)
                    && block.cell.agrees_with(record);
                self.note_step(record, &block);
                if whole && block.cell.has_result() {
                    self.keep_newest(block.cell);
                } else {
                    self.spoilt.push((id, block.cell.title()));
                }
            }
            other => {
                self.block = other;
                self.abandon_block();
                self.note_lost_cell(id);
            }
        }
    }

    /// Keeps `cell`, in place of the cell's records after fewer passes.
    fn keep_newest(&mut self, mut cell: CellRecords) {
        let mut cells = self.records.cells.iter_mut();
        let known = cells.find(|known| known.id == cell.id && known.lacks_passes());
        cell.note_pass(known.as_deref());
        match known {
            Some(known) => *known = cell,
            None => self.records.cells.push(cell),
        }
    }

    /// Notes the end of a block as progress.
    fn note_step(&mut self, done: &Record<'_>, block: &OpenBlock) {
        if let (Some(at), Some(at_us)) = (done.number("at"), done.number("at_us")) {
            self.step = BootProgress {
                done: at,
                done_us: at_us,
                ended: !block.part,
                ..self.step
            };
            self.at = block.cell.describe_cell();
        }
    }

    fn abandon_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.spoilt.push((Some(block.cell.id), block.cell.title()));
        }
    }

    /// Notes a cell's block that is damaged because its first record did not arrive.
    fn note_lost_cell(&mut self, id: Option<u64>) {
        let title = match id {
            Some(id) => format!("cell {id} (its first record is missing)"),
            None => "a cell without a number".into(),
        };
        self.spoilt.push((id, title));
    }
}

#[cfg(test)]
mod tests;
