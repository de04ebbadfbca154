// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the instructions that CPUs execute into samples.

pub(crate) mod releases;
mod state;
mod turns;

pub use releases::sgi_of_version2;
pub use state::Recorded;

use std::collections::{BTreeSet, HashMap};

use state::{CpuState, Ended, Open, Release};

use crate::clock::Stretch;
use crate::{Cause, Counts, Exits, Sample, Samples};

/// Value of a CPU's TPIDR_EL1, or TPIDR_EL2 under a hypervisor other than Rouse. The value identifies the CPU, because
/// each CPU has a different value, which is set only once.
pub type Tpidr = u64;

/// The clock value that is in a register now, with the index of the CPU whose sample it begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Begin(usize),
    End(usize),
}

/// Divides reported steps into samples. The caller reports the steps in the order in which the emulator executes them.
/// The parameter `now` of a step is the number of instructions that all CPUs together have executed so far, including
/// the reported instruction.
#[derive(Debug, Default)]
pub struct Cutter {
    cpus: Vec<CpuState>,
    current: Option<usize>,
    /// Whether the current CPU has paused, so that another CPU may continue.
    paused: bool,
    last: Counts,
    /// Number of instructions that all CPUs together had executed at the last [`Release`].
    released: u64,
    stores: HashMap<u64, Release>,
    sends: Vec<(Release, u64)>,
    exits: Exits,
    halts: u64,
    value: Option<Value>,
    open: usize,
    /// Number of samples that have begun.
    begun: u64,
    ended: usize,
    cell: Option<u64>,
    samples: Samples,
    /// Whether stretches are kept.
    keeps: bool,
    /// Stretches of all CPUs since the oldest open sample began.
    work: Vec<Stretch>,
}

/// The cell number that means no cell.
pub const NO_CELL: u64 = u64::MAX;

impl Cutter {
    /// Creates a cutter without any reported steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a cutter that also keeps the stretches of samples, which [`Self::record_counted`] returns.
    #[must_use]
    pub fn with_stretches() -> Self {
        Self {
            keeps: true,
            ..Self::default()
        }
    }

    /// Whether a sample is open. If not, only the beginning of a sample or of a cell needs to be reported.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open != 0
    }

    /// Whether a sample has ended and has not been counted yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended != 0
    }

    /// Whether the next step that must be reported is a value of the clock.
    #[must_use]
    pub fn wants_value(&self) -> bool {
        self.value.is_some()
    }

    /// Returns the samples so far.
    #[must_use]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Assigns later samples to cell `id`, or to no cell if `id` is [`NO_CELL`]. Drops samples that have ended but have
    /// not been counted.
    pub fn set_cell(&mut self, id: u64) {
        self.cell = (id != NO_CELL).then_some(id);
        self.ended = 0;
        for cpu in &mut self.cpus {
            cpu.ended = None;
        }
    }

    /// Sets the affinity of a CPU, which is Aff1 and Aff0 as in MPIDR_EL1.
    pub fn set_affinity(&mut self, tpidr: Tpidr, affinity: u64) {
        let cpu = self.index_of(tpidr);
        self.cpus[cpu].affinity = Some(affinity);
    }

    /// Whether any step of this CPU has been reported.
    #[must_use]
    pub fn knows_cpu(&self, tpidr: Tpidr) -> bool {
        self.cpus.iter().any(|cpu| cpu.tpidr == tpidr)
    }

    /// Records that a sample of this CPU begins.
    pub fn record_begin(&mut self, tpidr: Tpidr, now: Counts) {
        if self.open == 0 {
            self.forget_unsampled(now);
        }
        let cpu = self.advance_to(tpidr, now);
        self.cpus[cpu].unmet = false;
        self.begun += 1;
        let open: Vec<u64> = self.begun_and_open().iter().map(|open| open.0).collect();
        for cpu in &mut self.cpus {
            cpu.clock
                .record_sample_begin(self.begun, now.total(), &open);
        }
        let open = Open {
            number: self.begun,
            work: now,
            parties: BTreeSet::from([cpu]),
            executed: self.cpus.iter().map(|cpu| cpu.executed).collect(),
            exits: self.exits,
            halts: self.halts,
            value: None,
            unclear: false,
        };
        if self.cpus[cpu].open.replace(open).is_none() {
            self.open += 1;
        }
        if self.cpus[cpu].ended.take().is_some() {
            self.ended -= 1;
        }
        self.value = Some(Value::Begin(cpu));
    }

    /// Records that the open sample of this CPU ends.
    pub fn record_end(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.advance_to(tpidr, now);
        let Some(open) = self.cpus[cpu].open.take() else {
            return;
        };
        self.open -= 1;
        let Some(value) = open.value else { return };
        let parties = self.executed_by_parties(&open);
        let this = &mut self.cpus[cpu];
        let exits = std::array::from_fn(|n| self.exits[n] - open.exits[n]);
        let path = this.clock.counts_since(open.number);
        let sample = Sample {
            value,
            work: now.minus(open.work),
            parties,
            path: path.unwrap_or_default(),
            exits,
            halted: self.halts != open.halts,
            unclear: open.unclear || path.is_none(),
        };
        let from = open.work.total();
        let work = self.work.iter().filter(|stretch| stretch.to > from);
        let ended = Ended {
            sample,
            path: this.clock.last_stretches(sample.path.total()),
            work: work
                .map(|stretch| Stretch {
                    from: stretch.from.max(from),
                    ..*stretch
                })
                .collect(),
        };
        if this.ended.replace(ended).is_none() {
            self.ended += 1;
        }
        self.value = Some(Value::End(cpu));
        self.forget_stretches();
    }

    /// Returns how many instructions all CPUs together had executed when the oldest open sample began.
    #[must_use]
    pub fn oldest_begin(&self) -> Option<u64> {
        let open = self.cpus.iter().filter_map(|cpu| cpu.open.as_ref());
        open.map(|open| open.work.total()).min()
    }

    /// Drops the stretches before the oldest open sample. Dropping stretches can't wait until no sample is open,
    /// because samples may overlap without end.
    fn forget_stretches(&mut self) {
        let Some(oldest) = self.oldest_begin().filter(|_| self.keeps) else {
            return;
        };
        self.work.retain(|stretch| stretch.to > oldest);
        let released = self.stores.values_mut();
        let released = released.chain(self.sends.iter_mut().map(|(release, _)| release));
        released.for_each(|release| release.clock.forget_stretches(oldest));
        for cpu in &mut self.cpus {
            cpu.clock.forget_stretches(oldest);
            cpu.heard.forget_stretches(oldest);
        }
    }

    /// Records that this CPU has read `ticks` from the clock, at the beginning or the end of its sample.
    pub fn record_clock(&mut self, tpidr: Tpidr, ticks: u64) {
        let cpu = self.index_of(tpidr);
        match self.value {
            Some(Value::Begin(of)) if of == cpu => {
                self.value = None;
                if let Some(open) = &mut self.cpus[cpu].open {
                    open.value = Some(ticks);
                }
            }
            Some(Value::End(of)) if of == cpu => {
                self.value = None;
                if let Some(Ended { sample, .. }) = &mut self.cpus[cpu].ended {
                    sample.value = ticks.wrapping_sub(sample.value);
                }
            }
            _ => {}
        }
    }

    /// Records that this CPU counts its sample, which has just ended. Returns the sample, unless no cell has begun.
    pub fn record_counted(&mut self, tpidr: Tpidr) -> Option<Recorded> {
        let cpu = self.index_of(tpidr);
        let Ended { sample, path, work } = self.cpus[cpu].ended.take()?;
        self.ended -= 1;
        let cell = self.cell?;
        *self.samples.entry((cell, sample)).or_default() += 1;
        Some(Recorded {
            cell,
            sample,
            path,
            work,
        })
    }

    /// Records that the last reported step was an exception to EL2, with `cause`.
    pub fn record_exit(&mut self, cause: Cause) {
        self.exits[cause as usize] += 1;
    }

    /// Returns the instructions that the CPUs taking part in a sample have executed since the sample began.
    fn executed_by_parties(&self, open: &Open) -> Counts {
        let cpus = self.cpus.iter().enumerate();
        let parties = cpus.filter(|&(n, _)| open.parties.contains(&n));
        // A CPU that was not known when the sample began had executed nothing until then.
        let before = |n: usize| open.executed.get(n).copied().unwrap_or_default();
        parties.fold(Counts::default(), |sum, (n, cpu)| {
            sum.plus(cpu.executed.minus(before(n)))
        })
    }
}

#[cfg(test)]
mod tests;
