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
    /// Values of `probe`, by name, with their details.
    pub probes: BTreeMap<String, Probe>,
    /// Unit of values, and how that was found out.
    pub unit: Option<(String, String)>,
    /// Clock of each CPU that measures, by its place.
    pub core_clocks: BTreeMap<u64, ClockRecords>,
    /// Whole cells.
    pub cells: Vec<CellRecords>,
    /// Cells of which no block is whole, but one was damaged: what is known of them.
    pub damaged: Vec<String>,
    /// Other problems of the records.
    pub problems: Vec<String>,
    /// Counts of the soak, by name.
    pub soak: BTreeMap<String, u64>,
    /// SErrors after which the run went on.
    pub serrors: Serrors,
    /// Texts for people.
    pub notes: Vec<String>,
    /// The last record has arrived.
    pub ended: bool,
    /// Any record has arrived.
    pub begun: bool,
}

/// The clock of a CPU that measures, Hz; 0 for what stood or was not steady.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockRecords {
    /// Its MPIDR_EL1, as text.
    pub affinity: String,
    /// At the begin.
    pub begin_hz: Option<u64>,
    /// At the end.
    pub end_hz: Option<u64>,
    /// By which its values became cycles.
    pub cycles_hz: Option<u64>,
}

/// Finding of a fidelity probe.
#[derive(Debug, Default)]
pub struct Probe {
    /// `true`, `false`, `not-run` or `not-sure`.
    pub value: String,
    /// More of it, for people.
    pub detail: String,
}

/// How much was going to be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Cells.
    pub cells: u64,
    /// Cells that can't run.
    pub skipped: u64,
    /// Passes over the others.
    pub passes: u64,
    /// Wake-ups of a cell at most.
    pub iterations: u64,
    /// Milliseconds of the guest that a cell has at most; 0 is no bound.
    pub cell_ms: u64,
    /// A guess of the guest's time for all of it, microseconds.
    pub guess_us: u64,
}

/// How far a boot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootProgress {
    /// Parts of the work that are done: passes over cells, where cells are measured.
    pub done: u64,
    /// All parts.
    pub of: u64,
    /// Work that was done, in microseconds as guessed before.
    pub done_us: u64,
    /// The cell that was last has ended.
    pub ended: bool,
}

impl Records {
    /// Lists what is missing of the plan, for people.
    pub fn missing(&self) -> Option<String> {
        let mut missing = Vec::new();
        let parts = self.cells.iter().filter(|cell| cell.is_part()).count();
        if parts > 0 {
            missing.push(format!("{} with fewer passes than planned", cells(parts)));
        }
        let known = self.cells.len() + self.damaged.len();
        if let Some(plan) = self.plan.filter(|_| !self.ended)
            && let Some(none @ 1..) = (plan.cells as usize).checked_sub(known)
        {
            missing.push(format!("{} of {} without any", cells(none), plan.cells));
        }
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

fn cells(number: usize) -> String {
    match number {
        1 => "1 cell".into(),
        _ => format!("{number} cells"),
    }
}
