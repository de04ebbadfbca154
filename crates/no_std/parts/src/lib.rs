// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the time that two CPUs spend in samples into parts.
//!
//! The guest records when a CPU begins and ends a poll or a halt. EL2 records when an exit begins
//! and ends, and its activity in between. Guest and EL2 each keep their notes in a [`TimeLog`] per CPU.
//! [`Account`] follows the guest's and EL2's logs of both CPUs. The time between two notes belongs to one
//! part, and only time within a sample counts. So the parts of a sample add up to the length of the sample,
//! once for each CPU, and include no time between samples.
//!
//! Logs are read while CPUs still write them. So each CPU is followed only up to a time before
//! which its notes are certainly complete. If notes were overwritten before they were read, the
//! samples of those notes are left out completely and counted as lost.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod side;

use abi::TimeLog;
use arrayvec::ArrayVec;

use side::Side;
pub use side::{Guest, cause};

/// Number of CPUs that take part.
pub const CPUS: usize = 2;
/// The causes of exits. Each cause is a part.
pub const CAUSES: [&str; 9] = [
    "wfi", "wfe", "sgi", "irq", "hvc", "smc", "sysreg", "mmio", "other",
];
/// Number of parts.
pub const COUNT: usize = 3 + CAUSES.len();

/// The activity of a CPU at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The CPU runs the guest.
    Run,
    /// The guest polls, or EL2 polls for it.
    Poll,
    /// The CPU is halted, by the guest or by EL2.
    Wfi,
    /// EL2 handles an exit; the index of its cause in [`CAUSES`].
    El2(usize),
}

impl Part {
    /// Returns the index of the part.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Run => 0,
            Self::Poll => 1,
            Self::Wfi => 2,
            Self::El2(cause) => 3 + cause,
        }
    }
}

/// Sums over all samples and CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Ticks of each part, summed over all CPUs.
    pub parts: [u64; COUNT],
    /// Ticks of the samples, once for each CPU; the parts should add up to this number. This number
    /// is computed from the samples alone.
    pub ticks: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples left out because notes were overwritten or out of order.
    pub lost: u64,
}

impl Totals {
    /// Totals that are all zero.
    pub const ZERO: Self = Self {
        parts: [0; COUNT],
        ticks: 0,
        samples: 0,
        lost: 0,
    };
}

/// A sample whose end at least one CPU has not reached.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    end: u64,
    parts: [u64; COUNT],
    lost: bool,
}

/// Maximum number of samples in progress: while one CPU is in a sample, the other is at most one sample ahead.
const WINDOWS: usize = 4;

/// Follows the activities of both CPUs.
#[derive(Debug)]
pub struct Account<'l> {
    sides: [Side<'l>; CPUS],
    windows: ArrayVec<Window, WINDOWS>,
    totals: Totals,
}

impl<'l> Account<'l> {
    /// Follows CPUs through `logs`, which must be empty: each CPU's first log is the guest's, the
    /// second is EL2's. `halts` means that a WFI of the guest halts the CPU and does not trap.
    #[must_use]
    pub fn new(logs: [[&'l TimeLog; 2]; CPUS], halts: bool) -> Self {
        Self {
            sides: logs.map(|logs| Side::new(logs, halts)),
            windows: ArrayVec::new(),
            totals: Totals::ZERO,
        }
    }

    /// Adds a sample from `start` to `end`, in ticks, which must be later than all previous ones.
    pub fn sample(&mut self, start: u64, end: u64) {
        if self.windows.is_full() {
            // This should not happen: the CPUs lag too far behind this sample.
            self.windows.remove(0);
            self.totals.lost += 1;
        }
        self.windows.push(Window {
            start,
            end,
            parts: [0; COUNT],
            lost: end < start,
        });
    }

    /// Follows CPU `cpu` up to `until`: its notes up to then must exist, and every sample that
    /// began by then must have been passed to [`Self::sample`].
    pub fn follow(&mut self, cpu: usize, until: u64) {
        self.sides[cpu].follow(until, &mut self.windows);
        while let Some(first) = self.windows.first()
            && self.sides.iter().all(|side| side.has_passed(first.end))
        {
            let first = self.windows.remove(0);
            self.add_window(&first);
        }
    }

    /// Returns the time up to which all notes of `cpu` exist, while the CPU keeps running.
    #[must_use]
    pub fn noted_until(&self, cpu: usize) -> u64 {
        self.sides[cpu].noted_until()
    }

    /// Returns the totals, after both CPUs have ended and were followed to the end.
    #[must_use]
    pub fn totals(mut self) -> Totals {
        self.totals.lost += self.windows.len() as u64;
        self.totals
    }

    fn add_window(&mut self, window: &Window) {
        if window.lost {
            self.totals.lost += 1;
            return;
        }
        self.totals.samples += 1;
        self.totals.ticks += CPUS as u64 * (window.end - window.start);
        for (sum, ticks) in self.totals.parts.iter_mut().zip(window.parts) {
            *sum += ticks;
        }
    }
}

#[cfg(test)]
mod tests;
