// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the instructions that CPUs execute into samples.

mod state;

pub use state::Recorded;

use std::collections::{BTreeSet, HashMap};

use state::{CpuState, Ended, Open, Release, Stop};

use crate::clock::{self, Clock, Stretch, Via};
use crate::{Cause, Counts, Exits, Sample, Samples};

/// A CPU's TPIDR_EL1, or TPIDR_EL2 under a hypervisor of others. It identifies the CPU, since each has another value, set
/// once.
pub type Tpidr = u64;

/// The clock value that is in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Begin(usize),
    End(usize),
}

/// Makes samples from reported steps. The caller reports each step in the order of the emulator. `now` is the number of
/// instructions that all CPUs have executed so far, including the reported instruction.
#[derive(Debug, Default)]
pub struct Cutter {
    cpus: Vec<CpuState>,
    current: Option<usize>,
    /// Whether the current CPU has paused, so that another one may continue.
    paused: bool,
    last: Counts,
    /// Instructions that all CPUs had executed by the last [`Release`].
    released: u64,
    stores: HashMap<u64, Release>,
    sends: Vec<(Release, u64)>,
    exits: Exits,
    halts: u64,
    value: Option<Value>,
    open: usize,
    /// Samples that have begun.
    begun: u64,
    ended: usize,
    cell: Option<u64>,
    samples: Samples,
    /// Whether stretches are kept.
    keeps: bool,
    /// Stretches of all CPUs since the first of the open samples began.
    work: Vec<Stretch>,
}

/// Number that stands for no cell.
pub const NO_CELL: u64 = u64::MAX;

/// ICC_SGI1R_EL1.IRM: the SGI goes to all CPUs except the sender (IHI 0069H, 12.2.20).
const ALL_OTHERS: u64 = 1 << 40;

impl Cutter {
    /// Creates a cutter to which nothing has been reported.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a cutter that keeps the stretches of samples, too: [`Self::records`] returns them.
    #[must_use]
    pub fn with_stretches() -> Self {
        Self {
            keeps: true,
            ..Self::default()
        }
    }

    /// Whether a sample is open. If not, only the beginning of a sample or of a cell has to be reported.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open != 0
    }

    /// Whether a sample has ended and has not been counted yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended != 0
    }

    /// Whether the next step to report is a value of the clock.
    #[must_use]
    pub fn wants_value(&self) -> bool {
        self.value.is_some()
    }

    /// Returns the samples so far.
    #[must_use]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// From now on, samples belong to cell `id`, or to no cell with [`NO_CELL`]. Drops a sample that has ended but was
    /// not counted.
    pub fn cell(&mut self, id: u64) {
        self.cell = (id != NO_CELL).then_some(id);
        self.ended = 0;
        for cpu in &mut self.cpus {
            cpu.ended = None;
        }
    }

    /// Sets the affinity of a CPU: Aff1 and Aff0 as in MPIDR_EL1.
    pub fn affinity(&mut self, tpidr: Tpidr, affinity: u64) {
        let cpu = self.cpu(tpidr);
        self.cpus[cpu].affinity = Some(affinity);
    }

    /// Whether any step of this CPU was reported before.
    #[must_use]
    pub fn knows(&self, tpidr: Tpidr) -> bool {
        self.cpus.iter().any(|cpu| cpu.tpidr == tpidr)
    }

    /// A sample begins on this CPU.
    pub fn begins(&mut self, tpidr: Tpidr, now: Counts) {
        if self.open == 0 {
            self.forget(now);
        }
        let cpu = self.at(tpidr, now);
        self.cpus[cpu].unmet = false;
        self.begun += 1;
        let open = self.cpus.iter().filter_map(|cpu| cpu.open.as_ref());
        let open: Vec<u64> = open.map(|open| open.number).collect();
        for cpu in &mut self.cpus {
            cpu.clock.begins(self.begun, now.total(), &open);
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

    /// The sample of this CPU ends.
    pub fn ends(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.at(tpidr, now);
        let Some(open) = self.cpus[cpu].open.take() else {
            return;
        };
        self.open -= 1;
        let Some(value) = open.value else { return };
        let parties = self.executed_by_parties(&open);
        let this = &mut self.cpus[cpu];
        let exits = std::array::from_fn(|n| self.exits[n] - open.exits[n]);
        let path = this.clock.since(open.number);
        let sample = Sample {
            value,
            work: now.since(open.work),
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
            path: this.clock.last(sample.path.total()),
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

    /// Returns how many instructions all CPUs had executed when the oldest of the open samples began.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        let open = self.cpus.iter().filter_map(|cpu| cpu.open.as_ref());
        open.map(|open| open.work.total()).min()
    }

    /// Forgets the stretches before the open samples, which may overlap without an end.
    fn forget_stretches(&mut self) {
        let Some(oldest) = self.oldest().filter(|_| self.keeps) else {
            return;
        };
        self.work.retain(|stretch| stretch.to > oldest);
        let released = self.stores.values_mut();
        let released = released.chain(self.sends.iter_mut().map(|(release, _)| release));
        released.for_each(|release| release.clock.forget(oldest));
        for cpu in &mut self.cpus {
            cpu.clock.forget(oldest);
            cpu.heard.forget(oldest);
        }
    }

    /// This CPU has read `ticks` from its clock at the beginning or end of its sample.
    pub fn value(&mut self, tpidr: Tpidr, ticks: u64) {
        let cpu = self.cpu(tpidr);
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

    /// This CPU counts the sample that has just ended. Returns the sample, unless no cell has begun.
    pub fn records(&mut self, tpidr: Tpidr) -> Option<Recorded> {
        let cpu = self.cpu(tpidr);
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

    /// This CPU pauses, or halts.
    pub fn pauses(&mut self, tpidr: Tpidr, now: Counts, halts: bool) {
        self.at(tpidr, now);
        self.paused = true;
        self.halts += u64::from(halts);
    }

    /// This CPU executes an instruction. A CPU that is not `after_pause` when a sample first meets it was stopped in the
    /// middle of its code when the sample began, and not in a wait: the sample's path is then unknown.
    pub fn runs(&mut self, tpidr: Tpidr, now: Counts, after_pause: bool) {
        let cpu = self.at(tpidr, now);
        if std::mem::take(&mut self.cpus[cpu].unmet) && !after_pause {
            self.make_unclear();
        }
    }

    /// The last reported instruction was not executed, because its access failed: `now` is without it.
    pub fn fails(&mut self, now: Counts) {
        let Some((cpu, back)) = self.current.zip(self.last.checked_since(now)) else {
            return;
        };
        let this = &mut self.cpus[cpu];
        this.clock.take_back(back);
        this.executed = this.executed.checked_since(back).unwrap_or_default();
        clock::cut(&mut self.work, back.total());
        self.last = now;
    }

    /// Whether the CPU has not run since the sample began.
    #[must_use]
    pub fn is_unmet(&self, tpidr: Tpidr) -> bool {
        let mut cpus = self.cpus.iter();
        cpus.find(|cpu| cpu.tpidr == tpidr)
            .is_none_or(|cpu| cpu.unmet)
    }

    fn make_unclear(&mut self) {
        let open = self.cpus.iter_mut().filter_map(|cpu| cpu.open.as_mut());
        open.for_each(|open| open.unclear = true);
    }

    /// The last reported step was an exception taken to EL2 for this cause.
    pub fn exits(&mut self, cause: Cause) {
        self.exits[cause as usize] += 1;
    }

    /// This CPU stores to `address`, where other CPUs may look.
    pub fn stores(&mut self, tpidr: Tpidr, now: Counts, address: u64) {
        let release = self.releases(tpidr, now);
        self.stores.insert(address, release);
    }

    /// This CPU loads from `address`, where other CPUs may have stored.
    pub fn loads(&mut self, tpidr: Tpidr, now: Counts, address: u64) {
        let cpu = self.at(tpidr, now);
        self.cpus[cpu].looked = true;
        if let Some(release) = self.stores.get(&address).cloned() {
            self.link(cpu, &release, Via::Store);
        }
    }

    /// This CPU sends an interrupt by writing `value` to ICC_SGI1R_EL1.
    pub fn sends(&mut self, tpidr: Tpidr, now: Counts, value: u64) {
        let release = self.releases(tpidr, now);
        self.sends.push((release, value));
    }

    /// This CPU is interrupted. The interrupt ended its wait, and no store that the handler finds before it
    /// [acknowledges](Self::acknowledges) the interrupt did: a hypervisor takes locks there.
    pub fn interrupted(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.at(tpidr, now);
        if let Some(release) = self.sent_to(cpu) {
            self.link(cpu, &release, Via::Interrupt);
        }
    }

    /// This CPU acknowledges an interrupt.
    pub fn acknowledges(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.at(tpidr, now);
        self.cpus[cpu].looked = true;
        if let Some(release) = self.sent_to(cpu) {
            self.link(cpu, &release, Via::Interrupt);
        }
    }

    /// Returns the last interrupt that was sent to a CPU.
    fn sent_to(&self, cpu: usize) -> Option<Release> {
        let affinity = self.cpus[cpu].affinity;
        let mut sends = self.sends.iter().rev();
        let found = sends.find(|(release, value)| match affinity {
            Some(affinity) => is_for(*value, affinity),
            None => release.cpu != cpu,
        });
        found.map(|(release, _)| release.clone())
    }

    fn cpu(&mut self, tpidr: Tpidr) -> usize {
        let known = self.cpus.iter().position(|cpu| cpu.tpidr == tpidr);
        known.unwrap_or_else(|| {
            // It has executed nothing so far, so all open samples begin at zero.
            let open = self.cpus.iter().filter_map(|cpu| cpu.open.as_ref());
            let open: Vec<(u64, u64)> = open.map(|open| (open.number, open.work.total())).collect();
            let numbers: Vec<u64> = open.iter().map(|open| open.0).collect();
            let mut clock = Clock::default();
            for (number, at) in open {
                clock.begins(number, at, &numbers);
            }
            self.cpus.push(CpuState {
                tpidr,
                affinity: None,
                clock,
                executed: Counts::default(),
                stopped: 0,
                wait: Vec::new(),
                unmet: true,
                looked: false,
                linked: false,
                heard: Clock::default(),
                open: None,
                ended: None,
            });
            self.cpus.len() - 1
        })
    }

    /// Drops everything that happened while no sample was open.
    fn forget(&mut self, now: Counts) {
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

    /// Adds the instructions executed since the last step to the clock of this CPU. If another CPU was current and had
    /// not paused, the open samples become unclear, since the CPUs changed at an unknown instruction.
    fn at(&mut self, tpidr: Tpidr, now: Counts) -> usize {
        let cpu = self.cpu(tpidr);
        let executed = now.since(self.last);
        if self.current != Some(cpu) {
            if let Some(other) = self.current {
                self.cpus[other].stopped = self.last.total();
                if !self.paused {
                    self.make_unclear();
                }
            }
            self.current = Some(cpu);
            self.continues(cpu);
        }
        let stretch = self.keeps.then(|| Stretch {
            cpu,
            from: self.last.total(),
            to: now.total(),
            via: Via::Own,
        });
        if let Some(stretch) = stretch {
            clock::push(&mut self.work, stretch);
        }
        self.last = now;
        self.paused = false;
        let this = &mut self.cpus[cpu];
        this.clock.advance(executed, stretch);
        this.executed = this.executed.plus(executed);
        cpu
    }

    /// `cpu` executes again. Its wait continues if it has not looked since its previous stop.
    fn continues(&mut self, cpu: usize) {
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

    /// Returns a [`Release`] by this CPU at this moment.
    fn releases(&mut self, tpidr: Tpidr, now: Counts) -> Release {
        let cpu = self.at(tpidr, now);
        self.released = now.total();
        let this = &mut self.cpus[cpu];
        this.heard = Clock::default();
        Release {
            cpu,
            clock: this.clock.clone(),
            at: now.total(),
        }
    }

    /// `cpu` has found `release`. Its clock follows if it was waiting when the release happened, and if this is the
    /// first release that it finds after the wait. A later release is not a cause: it may be a word that another CPU
    /// changed before its own wait.
    fn link(&mut self, cpu: usize, release: &Release, via: Via) {
        self.join(cpu, release);
        let this = &mut self.cpus[cpu];
        if this.linked || release.cpu == cpu {
            return;
        }
        let Some(last) = this.wait.iter().rposition(|stop| stop.at <= release.at) else {
            return;
        };
        // A later release has not ended an earlier stop.
        this.wait.drain(..last);
        let stop = this.wait[0];
        let (since, at) = (this.executed.since(stop.resumed), stop.since);
        let samples = self.timed_by(cpu);
        let this = &mut self.cpus[cpu];
        this.heard = std::mem::take(&mut this.heard).later(&release.clock, &samples);
        this.clock.follow(&this.heard, since, at, via);
        this.linked = true;
    }

    /// Returns the samples in whose time a CPU's causes are ordered: its own, then the oldest.
    fn timed_by(&self, cpu: usize) -> Vec<u64> {
        let number = |cpu: &CpuState| cpu.open.as_ref().map(|open| open.number);
        let own = number(&self.cpus[cpu]);
        let oldest = self.cpus.iter().filter_map(number).min();
        own.into_iter().chain(oldest).collect()
    }

    /// `cpu` has found `release`. If one of the two CPUs takes part in a sample that was open at the release, the other
    /// one now takes part, too.
    fn join(&mut self, cpu: usize, release: &Release) {
        let both = [cpu, release.cpu];
        let open = self.cpus.iter_mut().filter_map(|cpu| cpu.open.as_mut());
        let open = open.filter(|open| open.work.total() <= release.at);
        for open in open.filter(|open| both.iter().any(|cpu| open.parties.contains(cpu))) {
            open.parties.extend(both);
        }
    }

    /// Returns the instructions that the CPUs of a sample have executed since it began.
    fn executed_by_parties(&self, open: &Open) -> Counts {
        let cpus = self.cpus.iter().enumerate();
        let parties = cpus.filter(|&(n, _)| open.parties.contains(&n));
        // A CPU that was unknown when the sample began had executed nothing.
        let before = |n: usize| open.executed.get(n).copied().unwrap_or_default();
        parties.fold(Counts::default(), |sum, (n, cpu)| {
            sum.plus(cpu.executed.since(before(n)))
        })
    }
}

/// Whether an interrupt is for the CPU with this affinity (IHI 0069H, 12.2.20).
pub(crate) fn is_for(value: u64, affinity: u64) -> bool {
    let (aff0, aff1) = (affinity & 0xff, affinity >> 8 & 0xff);
    let range = value >> 44 & 0xf;
    let listed = aff0 >> 4 == range && value >> (aff0 & 0xf) & 1 != 0;
    value & ALL_OTHERS != 0 || value >> 16 & 0xff == aff1 && listed
}

#[cfg(test)]
mod tests;
