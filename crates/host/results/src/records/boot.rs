// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a boot.

use std::collections::BTreeMap;

use super::CellRecords;
use crate::Serrors;

/// Everything that one boot reported.
#[derive(Debug, Default)]
pub struct Records {
    /// Size of the plan, if the boot reported it.
    pub plan: Option<Size>,
    /// Fields of `machine`.
    pub machine: BTreeMap<String, String>,
    /// Values of `feature`, by name.
    pub features: BTreeMap<String, String>,
    /// Values and details of `probe`, by name.
    pub probes: BTreeMap<String, Probe>,
    /// Unit of values, and its source.
    pub unit: Option<(String, String)>,
    /// Clock of each measuring CPU, by the CPU's place.
    pub core_clocks: BTreeMap<u64, ClockRecords>,
    /// Whole cells.
    pub cells: Vec<CellRecords>,
    /// Descriptions of cells with a damaged block and no whole one.
    pub damaged: Vec<String>,
    /// Other problems of the records.
    pub problems: Vec<String>,
    /// Counts of the soak, by name.
    pub soak: BTreeMap<String, u64>,
    /// SErrors after which the run went on.
    pub serrors: Serrors,
    /// Texts for people.
    pub notes: Vec<String>,
    /// Whether the last record has arrived.
    pub ended: bool,
    /// Whether any record has arrived.
    pub begun: bool,
}

/// The clock of a measuring CPU, in Hz. 0 if it stood or was not steady.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockRecords {
    /// Its MPIDR_EL1, as text.
    pub affinity: String,
    /// The clock at the beginning of the boot.
    pub begin_hz: Option<u64>,
    /// The clock at the end of the boot.
    pub end_hz: Option<u64>,
    /// The clock that converted its values to cycles.
    pub cycles_hz: Option<u64>,
}

/// Finding of a fidelity probe.
#[derive(Debug, Default)]
pub struct Probe {
    /// `true`, `false`, `not-run` or `not-sure`.
    pub value: String,
    /// Details, for people.
    pub detail: String,
}

/// Size of the planned measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of cells.
    pub cells: u64,
    /// Number of cells that can't run.
    pub skipped: u64,
    /// Number of passes over the other cells.
    pub passes: u64,
    /// Largest number of wake-ups in a cell.
    pub iterations: u64,
    /// The most milliseconds of the guest's time that a cell may take. 0 means no limit.
    pub cell_ms: u64,
    /// Estimate of the guest's time for the whole plan, in microseconds.
    pub guess_us: u64,
}

/// Progress of a boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootProgress {
    /// Number of finished parts of the work: passes over cells, if cells are measured.
    pub done: u64,
    /// Number of all parts.
    pub of: u64,
    /// Finished work, in microseconds of the estimate.
    pub done_us: u64,
    /// Whether the last cell has ended.
    pub ended: bool,
}

impl Records {
    /// Lists, for people, the missing parts of the plan.
    pub fn missing_parts(&self) -> Option<String> {
        let mut missing = Vec::new();
        let parts = self.cells.iter().filter(|cell| cell.lacks_passes()).count();
        if parts > 0 {
            missing.push(format!(
                "{} with fewer passes than planned",
                format_cells(parts)
            ));
        }
        let known = self.cells.len() + self.damaged.len();
        if let Some(plan) = self.plan.filter(|_| !self.ended)
            && let Some(none @ 1..) = (plan.cells as usize).checked_sub(known)
        {
            missing.push(format!(
                "{} of {} without any",
                format_cells(none),
                plan.cells
            ));
        }
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

fn format_cells(number: usize) -> String {
    match number {
        1 => "1 cell".into(),
        _ => format!("{number} cells"),
    }
}
