// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collecting the records of one boot; docs/records.md lists their kinds.
//!
//! Whatever a bad console does, a cell is taken whole or not at all: its block
//! must have every sequence number, and as many records as it says.

mod cell;

use std::collections::BTreeMap;

use wire::{Damage, Record};

pub use cell::{Cell, Stat};
use cell::{fields, text};

/// Everything that one boot reported.
#[derive(Debug, Default)]
pub struct Records {
    /// Fields of `machine`.
    pub machine: BTreeMap<String, String>,
    /// Values of `feature`, by name.
    pub features: BTreeMap<String, String>,
    /// Values of `probe`, by name, with their details.
    pub probes: BTreeMap<String, Probe>,
    /// What values count, and how that was found out.
    pub unit: Option<(String, String)>,
    /// Whole cells.
    pub cells: Vec<Cell>,
    /// Cells with a missing or damaged record: what is known of them.
    pub damaged: Vec<String>,
    /// What else is wrong with the records.
    pub problems: Vec<String>,
    /// What the soak has done, by name.
    pub soak: BTreeMap<String, u64>,
    /// Texts for people.
    pub notes: Vec<String>,
    /// The last record has arrived.
    pub ended: bool,
    /// Any record has arrived.
    pub begun: bool,
}

/// What a fidelity probe found.
#[derive(Debug, Default)]
pub struct Probe {
    /// `true`, `false`, `not-run` or `not-sure`.
    pub value: String,
    /// More of it, for people.
    pub detail: String,
}

/// A block that is not complete yet.
#[derive(Debug, Default)]
struct Block {
    cell: Cell,
    records: u64,
    spoilt: bool,
}

/// Reads lines.
#[derive(Debug, Default)]
pub struct Collector {
    records: Records,
    block: Option<Block>,
    expected: u64,
    /// Parts of the work done and wanted, as last reported.
    pub progress: (u64, u64),
    /// The cell that was run last.
    pub at: String,
}

impl Collector {
    /// Reads a line of the console; `false` if it is no record.
    pub fn feed(&mut self, line: &str) -> bool {
        match Record::parse(line) {
            Err(Damage::NotARecord) => return false,
            // The hole in the sequence will tell where it was.
            Err(Damage::Checksum | Damage::Form) => {}
            Ok(record) => {
                self.records.begun = true;
                self.check_sequence(record.seq);
                self.take(&record);
            }
        }
        true
    }

    /// What has been read, with what must have been lost.
    pub fn finish(mut self) -> Records {
        self.abandon_block();
        if self.records.begun && !self.records.ended {
            let last = self.expected.saturating_sub(1);
            self.records
                .problems
                .push(format!("the records stop after number {last}"));
        }
        self.records
    }

    /// What the soak has done so far.
    pub const fn soak(&self) -> &BTreeMap<String, u64> {
        &self.records.soak
    }

    /// Whether a record with number `seq` can't be of this boot any more.
    pub fn is_over_before(&self, seq: u64) -> bool {
        self.records.begun && (self.records.ended || seq < self.expected)
    }

    fn check_sequence(&mut self, seq: u64) {
        let expected = self.expected;
        self.expected = seq + 1;
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

    fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            "cell" => self.begin_block(record),
            "done" => self.end_block(record),
            "more" | "stat" | "hist" | "raw" | "count" | "skipped" => self.continue_block(record),
            kind => {
                if let Some(block) = &mut self.block {
                    block.records += 1;
                }
                self.take_other(kind, record);
            }
        }
    }

    fn take_other(&mut self, kind: &str, record: &Record<'_>) {
        let name = || text(record, "name").unwrap_or_default();
        let value = |key| text(record, key).unwrap_or_default();
        let records = &mut self.records;
        match kind {
            "boot" => records.machine.extend(fields(record)),
            "machine" => records.machine.extend(fields(record)),
            "feature" => drop(records.features.insert(name(), value("value"))),
            "probe" => {
                let (value, detail) = (value("value"), value("detail"));
                records.probes.insert(name(), Probe { value, detail });
            }
            "unit" => records.unit = Some((value("unit"), value("how"))),
            "soak" => drop(
                records
                    .soak
                    .insert(name(), record.number("count").unwrap_or(0)),
            ),
            "note" => records.notes.push(value("text")),
            "progress" => {
                let number = |key| record.number(key).unwrap_or(0);
                self.progress = (number("done"), number("of"));
                self.at = value("cell");
            }
            "end" => records.ended = true,
            // Of a newer writer.
            _ => {}
        }
    }

    fn begin_block(&mut self, record: &Record<'_>) {
        self.abandon_block();
        let id = record.number("id").unwrap_or(0);
        let cell = Cell {
            id,
            ..Cell::default()
        };
        self.block = Some(Block {
            cell,
            ..Block::default()
        });
        self.continue_block(record);
    }

    fn continue_block(&mut self, record: &Record<'_>) {
        let id = record.number("id");
        match &mut self.block {
            Some(block) if Some(block.cell.id) == id => {
                block.records += 1;
                block.spoilt |= block.cell.take(record).is_none();
            }
            _ => {
                self.abandon_block();
                self.lost(id);
            }
        }
    }

    fn end_block(&mut self, record: &Record<'_>) {
        let id = record.number("id");
        match self.block.take() {
            Some(block) if Some(block.cell.id) == id => {
                let whole = !block.spoilt
                    && record.number("records") == Some(block.records + 1)
                    && block.cell.agrees_with(record);
                if whole && block.cell.has_result() {
                    self.records.cells.push(block.cell);
                } else {
                    self.records.damaged.push(block.cell.title());
                }
            }
            other => {
                self.block = other;
                self.abandon_block();
                self.lost(id);
            }
        }
    }

    fn abandon_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.records.damaged.push(block.cell.title());
        }
    }

    /// Notes a cell whose beginning did not arrive, once.
    fn lost(&mut self, id: Option<u64>) {
        let title = match id {
            Some(id) => format!("cell {id} (its first record is missing)"),
            None => "a cell without a number".into(),
        };
        if !self.records.damaged.contains(&title) {
            self.records.damaged.push(title);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
