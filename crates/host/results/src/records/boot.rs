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
    /// Fields of the record `machine`.
    pub machine: BTreeMap<String, String>,
    /// Values of the records `feature`, by name.
    pub features: BTreeMap<String, String>,
    /// Values and details of the records `probe`, by name.
    pub probes: BTreeMap<String, Probe>,
    /// The unit of values, and how it was determined.
    pub unit: Option<(String, String)>,
    /// Clock of each measuring CPU, by the number of the CPU.
    pub core_clocks: BTreeMap<u64, ClockRecords>,
    /// Cells that have a complete block.
    pub cells: Vec<CellRecords>,
    /// Descriptions of cells that have damaged blocks and no complete one.
    pub damaged: Vec<String>,
    /// Other problems with the records.
    pub problems: Vec<String>,
    /// Counts of the soak, by name.
    pub soak: BTreeMap<String, u64>,
    /// SErrors after which the run continued.
    pub serrors: Serrors,
    /// Texts for people.
    pub notes: Vec<String>,
    /// Whether the last record has arrived.
    pub ended: bool,
    /// Whether any record has arrived.
    pub begun: bool,
}

/// The clock of a measuring CPU, in Hz. A frequency is 0 if the clock stood still or was not steady.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockRecords {
    /// The CPU's MPIDR_EL1, as text.
    pub affinity: String,
    /// The clock at the beginning of the boot.
    pub begin_hz: Option<u64>,
    /// The clock at the end of the boot.
    pub end_hz: Option<u64>,
    /// The clock that converted the CPU's values to cycles.
    pub cycles_hz: Option<u64>,
}

/// The finding of a fidelity probe.
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
    /// Number of passes over the cells that can run.
    pub passes: u64,
    /// Largest number of wake-ups per cell.
    pub iterations: u64,
    /// Maximum time of a cell, in milliseconds of the guest's clock. 0 means no limit.
    pub cell_ms: u64,
    /// Estimated time of the whole plan, in microseconds of the guest's clock.
    pub guess_us: u64,
}

/// Progress of a boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootProgress {
    /// Number of finished parts of the work. If cells are measured, a part is a pass over a cell.
    pub done: u64,
    /// Number of parts in total.
    pub of: u64,
    /// Finished work, in microseconds of the estimated time.
    pub done_us: u64,
    /// Whether the last cell has ended.
    pub ended: bool,
}

impl Records {
    /// Lists the missing parts of the plan, for people.
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
