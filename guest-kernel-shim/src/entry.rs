// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds a cell of the plan with its measurements, and the progress of all cells.

mod work;

use parts::Totals;
use plan::{Cell, Limits, Pace, SkipReason};

pub use self::work::Work;
use crate::clock::watch::Seen;
use crate::counts::Counts;
use crate::kernel::stats;
use crate::workload::arrivals::Load;
use crate::workload::samples::Samples;

/// Rounds of noise that each CPU made while a cell was measured.
pub type Rounds = [u64];

/// The recent utilisation of each CPU.
pub type Busy = [sched::load::Load];

/// A cell and its measurements.
pub struct Entry {
    /// The cell.
    pub cell: Cell,
    /// Why the cell is not run, if it is skipped.
    pub skipped: Option<SkipReason>,
    /// Limits on the number of the cell's wake-ups and on its ticks.
    pub limits: Limits,
    /// The cell's progress.
    pub pace: Pace,
    /// The core's frequency during the cell's passes, if it can be measured.
    pub core_hz: Seen,
    /// The cell's samples, if the cell is run.
    pub samples: Option<&'static mut Samples>,
    /// Counts of the cell's blocks.
    pub counts: Counts,
    /// Number of samples, plus the unrecorded wake-ups that each block makes in the same way:
    /// counts include both.
    pub made: u64,
    /// Counts made only during samples with time stamps.
    pub stamped: Counts,
    /// Where the CPUs spent their time within the samples with time stamps.
    pub parts: Totals,
    /// Counts of the kernel, for workloads that run on it.
    pub kernel: stats::Totals,
    /// Counts of requests, if they arrive at given times.
    pub load: Load,
    /// Utilisation of each CPU at the end of the last block, from which the next block continues.
    pub busy: &'static mut Busy,
    /// Rounds of noise that each CPU has made.
    pub noise: &'static mut Rounds,
}

impl Entry {
    /// Whether the entry has anything to do or report in pass `pass`: a cell that can't run is reported at once.
    pub fn is_due(&self, pass: u32) -> bool {
        match self.samples {
            Some(_) => self.pace.ended.is_none(),
            None => pass == 0,
        }
    }
}
