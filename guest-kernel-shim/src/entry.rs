// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cell of the plan with what was measured of it, and how far all of them are.

mod work;

use parts::Totals;
use plan::{Cell, Limits, Pace, SkipReason};

pub use self::work::Work;
use crate::clock::watch::Seen;
use crate::counts::Counts;
use crate::kernel::stats;
use crate::workload::arrivals::Load;
use crate::workload::samples::Samples;

/// Rounds of noise that each CPU has made while a cell was measured.
pub type Rounds = [u64];

/// How busy each CPU was lately.
pub type Busy = [sched::load::Load];

/// A cell and what was measured of it.
pub struct Entry {
    /// The cell.
    pub cell: Cell,
    /// Why it is not run.
    pub skipped: Option<SkipReason>,
    /// Bounds on its wake-ups and ticks.
    pub limits: Limits,
    /// How far it is.
    pub pace: Pace,
    /// The core's frequency at its passes, where it can be told.
    pub core_hz: Seen,
    /// Its samples, if it is.
    pub samples: Option<&'static mut Samples>,
    /// Counts of its blocks.
    pub counts: Counts,
    /// Samples, and what was made like them in each block but is none: what the counts
    /// are of.
    pub made: u64,
    /// Counts of the samples with time stamps.
    pub stamped: Counts,
    /// Where the CPUs were within those.
    pub parts: Totals,
    /// Counts of the kernel, for workloads that run on it.
    pub kernel: stats::Totals,
    /// How requests came, where it is time that has them come.
    pub load: Load,
    /// How busy its blocks left each CPU: the next one goes on from there.
    pub busy: &'static mut Busy,
    /// Rounds of noise that each CPU made meanwhile.
    pub noise: &'static mut Rounds,
}

impl Entry {
    /// Whether it has anything to do or to say in pass `pass`: what can't run is
    /// reported at once.
    pub fn is_due(&self, pass: u32) -> bool {
        match self.samples {
            Some(_) => self.pace.ended.is_none(),
            None => pass == 0,
        }
    }
}
