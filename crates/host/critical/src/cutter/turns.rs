// SPDX-License-Identifier: MIT OR Apache-2.0
//! The turns of the CPUs, and the instructions that each CPU executes.

use super::Cutter;
use super::state::{CpuState, Stop};
use crate::clock::{self, Clock, Stretch, Via};
use crate::{Counts, Tpidr};

impl Cutter {
    /// Records that this CPU pauses. `halts` tells whether the pause halts it.
    pub fn record_pause(&mut self, tpidr: Tpidr, now: Counts, halts: bool) {
        self.advance_to(tpidr, now);
        self.paused = true;
        self.halts += u64::from(halts);
    }

    /// Records that this CPU executes an instruction. If this is its first instruction in a sample, and is not
    /// `after_pause`, the CPU was not in a wait but in the middle of its code when the sample began. The path of the
    /// sample is then unknown.
    pub fn record_run(&mut self, tpidr: Tpidr, now: Counts, after_pause: bool) {
        let cpu = self.advance_to(tpidr, now);
        if std::mem::take(&mut self.cpus[cpu].unmet) && !after_pause {
            self.make_samples_unclear();
        }
    }

    /// Records that the last reported instruction was not executed, because its access to memory failed. `now` does not
    /// include that instruction.
    pub fn record_failed_access(&mut self, now: Counts) {
        let Some((cpu, back)) = self.current.zip(self.last.checked_minus(now)) else {
            return;
        };
        let this = &mut self.cpus[cpu];
        this.clock.take_back(back);
        this.executed = this.executed.checked_minus(back).unwrap_or_default();
        clock::cut_last(&mut self.work, back.total());
        self.last = now;
    }

    /// Whether this CPU has not run since the oldest open sample began.
    #[must_use]
    pub fn has_not_run(&self, tpidr: Tpidr) -> bool {
        let mut cpus = self.cpus.iter();
        cpus.find(|cpu| cpu.tpidr == tpidr)
            .is_none_or(|cpu| cpu.unmet)
    }

    fn make_samples_unclear(&mut self) {
        let open = self.cpus.iter_mut().filter_map(|cpu| cpu.open.as_mut());
        open.for_each(|open| open.unclear = true);
    }

    /// Returns the index of a CPU. Adds the CPU's state if none of its steps has been reported yet.
    pub(super) fn index_of(&mut self, tpidr: Tpidr) -> usize {
        let known = self.cpus.iter().position(|cpu| cpu.tpidr == tpidr);
        known.unwrap_or_else(|| {
            // The new CPU has executed nothing so far, so its clock is zero at the beginning of every open sample.
            let open = self.begun_and_open();
            let numbers: Vec<u64> = open.iter().map(|open| open.0).collect();
            let mut cpu = CpuState::new(tpidr);
            for (number, at) in open {
                cpu.clock.record_sample_begin(number, at, &numbers);
            }
            self.cpus.push(cpu);
            self.cpus.len() - 1
        })
    }

    /// Drops the records of everything that happened while no sample was open.
    pub(super) fn forget_unsampled(&mut self, now: Counts) {
        self.stores.clear();
        self.sends.clear();
        self.work.clear();
        self.last = now;
        self.current = None;
        self.paused = false;
        for cpu in &mut self.cpus {
            cpu.clock = Clock::default();
            cpu.executed = Counts::default();
            cpu.heard = Clock::default();
            cpu.wait.clear();
            (cpu.looked, cpu.linked) = (false, false);
            cpu.unmet = true;
            cpu.stopped = now.total();
        }
    }

    /// Adds the instructions that were executed since the last step to the clock of this CPU. If another CPU was
    /// current and had not paused, the CPUs changed at an unknown instruction, so the open samples become unclear.
    pub(super) fn advance_to(&mut self, tpidr: Tpidr, now: Counts) -> usize {
        let cpu = self.index_of(tpidr);
        let executed = now.minus(self.last);
        if self.current != Some(cpu) {
            if let Some(other) = self.current {
                self.cpus[other].stopped = self.last.total();
                if !self.paused {
                    self.make_samples_unclear();
                }
            }
            self.current = Some(cpu);
            self.record_resume(cpu);
        }
        let stretch = self.keeps.then(|| Stretch {
            cpu,
            from: self.last.total(),
            to: now.total(),
            via: Via::Own,
        });
        if let Some(stretch) = stretch {
            clock::push_stretch(&mut self.work, stretch);
        }
        self.last = now;
        self.paused = false;
        let this = &mut self.cpus[cpu];
        this.clock.advance(executed, stretch);
        this.executed = this.executed.plus(executed);
        cpu
    }

    /// Records that `cpu` executes instructions again. The CPU's wait continues if it has not looked for stores since
    /// its previous stop.
    fn record_resume(&mut self, cpu: usize) {
        let this = &mut self.cpus[cpu];
        if this.looked {
            this.wait.clear();
        }
        (this.looked, this.linked) = (false, false);
        if self.released >= this.stopped {
            this.wait.push(Stop {
                at: this.stopped,
                resumed: this.executed,
                since: self.last.total(),
            });
        }
    }

    /// Returns, for each open sample in order, its number and how many instructions all CPUs together had executed when
    /// it began.
    pub(super) fn begun_and_open(&self) -> Vec<(u64, u64)> {
        let open = self.cpus.iter().filter_map(|cpu| cpu.open.as_ref());
        let mut open: Vec<_> = open.map(|open| (open.number, open.work.total())).collect();
        open.sort_unstable();
        open
    }
}
