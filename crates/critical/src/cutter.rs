// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cuts what CPUs execute into samples.

use std::collections::HashMap;

use crate::{Cause, Counts, Exits, Sample, Samples};

/// Something that is different for each CPU and that it keeps: its TPIDR_EL1.
pub type Who = u64;

/// What another CPU may have waited for.
#[derive(Clone, Copy, Debug)]
struct Release {
    cpu: usize,
    /// The CPU's clock when it happened.
    clock: Counts,
    /// Instructions of all CPUs until then.
    at: u64,
}

/// A sample that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    work: Counts,
    clock: Counts,
    exits: Exits,
    halts: u64,
    value: Option<u64>,
    unclear: bool,
}

/// What is known of a CPU.
#[derive(Clone, Debug)]
struct Cpu {
    who: Who,
    /// Its affinity, if that is known.
    affinity: Option<u64>,
    clock: Counts,
    /// The clock when it went on last.
    resumed: Counts,
    /// Instructions of all CPUs when it stopped.
    stopped: u64,
    /// It has found since it went on what it waited for.
    linked: bool,
    /// The latest clock of another CPU that it has found since it told others
    /// anything itself.
    heard: Counts,
    open: Option<Open>,
    /// A sample that has ended and may be counted.
    ended: Option<Sample>,
}

/// Which value of the clock is in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Begin(usize),
    End(usize),
}

/// Makes samples of what happens. Everything is told in the order in which the
/// emulator does it, with `now`: what all CPUs have executed, the instruction that
/// it is about included.
#[derive(Debug, Default)]
pub struct Cutter {
    cpus: Vec<Cpu>,
    current: Option<usize>,
    /// The current CPU has paused: another one may go on.
    paused: bool,
    last: Counts,
    stores: HashMap<u64, Release>,
    sends: Vec<(Release, u64)>,
    exits: Exits,
    halts: u64,
    value: Option<Value>,
    open: usize,
    ended: usize,
    cell: Option<u64>,
    samples: Samples,
}

/// What stands for no cell: what follows is no pass of one.
pub const NO_CELL: u64 = u64::MAX;

/// ICC_SGI1R_EL1.IRM: to all but the one that sends (IHI 0069H, 12.2.20).
const ALL_OTHERS: u64 = 1 << 40;

impl Cutter {
    /// Nothing has happened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a sample is open; if none is, nothing needs to be told but the
    /// beginning of one and of a cell.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open != 0
    }

    /// Whether a sample has ended that was not counted yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended != 0
    }

    /// Whether a value of the clock is waited for.
    #[must_use]
    pub fn wants_value(&self) -> bool {
        self.value.is_some()
    }

    /// The samples so far.
    #[must_use]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Samples from now on are of cell `id`, or with [`NO_CELL`] of none. One that has
    /// ended and was not counted until now is left out.
    pub fn cell(&mut self, id: u64) {
        self.cell = (id != NO_CELL).then_some(id);
        self.ended = 0;
        for cpu in &mut self.cpus {
            cpu.ended = None;
        }
    }

    /// Says the affinity of a CPU: Aff1 and Aff0 as in MPIDR_EL1.
    pub fn affinity(&mut self, who: Who, affinity: u64) {
        let cpu = self.cpu(who);
        self.cpus[cpu].affinity = Some(affinity);
    }

    /// Whether this CPU was told of already.
    #[must_use]
    pub fn knows(&self, who: Who) -> bool {
        self.cpus.iter().any(|cpu| cpu.who == who)
    }

    /// A sample begins on `who`.
    pub fn begins(&mut self, who: Who, now: Counts) {
        if self.open == 0 {
            self.forget(now);
        }
        let cpu = self.at(who, now);
        let open = Open {
            work: now,
            clock: self.cpus[cpu].clock,
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

    /// The sample of `who` ends.
    pub fn ends(&mut self, who: Who, now: Counts) {
        let cpu = self.at(who, now);
        let this = &mut self.cpus[cpu];
        let Some(open) = this.open.take() else { return };
        self.open -= 1;
        let Some(value) = open.value else { return };
        let exits = std::array::from_fn(|n| self.exits[n] - open.exits[n]);
        let sample = Sample {
            value,
            work: now.since(open.work),
            path: this.clock.since(open.clock),
            exits,
            halted: self.halts != open.halts,
            unclear: open.unclear,
        };
        if this.ended.replace(sample).is_none() {
            self.ended += 1;
        }
        self.value = Some(Value::End(cpu));
    }

    /// The clock that `who` has read at the beginning or end of its sample.
    pub fn value(&mut self, who: Who, ticks: u64) {
        let cpu = self.cpu(who);
        match self.value {
            Some(Value::Begin(of)) if of == cpu => {
                self.value = None;
                if let Some(open) = &mut self.cpus[cpu].open {
                    open.value = Some(ticks);
                }
            }
            Some(Value::End(of)) if of == cpu => {
                self.value = None;
                if let Some(sample) = &mut self.cpus[cpu].ended {
                    sample.value = ticks.wrapping_sub(sample.value);
                }
            }
            _ => {}
        }
    }

    /// `who` counts the sample that it has ended.
    pub fn records(&mut self, who: Who) {
        let cpu = self.cpu(who);
        if let Some(sample) = self.cpus[cpu].ended.take() {
            self.ended -= 1;
            if let Some(cell) = self.cell {
                *self.samples.entry((cell, sample)).or_default() += 1;
            }
        }
    }

    /// `who` pauses, or halts.
    pub fn pauses(&mut self, who: Who, now: Counts, halts: bool) {
        self.at(who, now);
        self.paused = true;
        self.halts += u64::from(halts);
    }

    /// `who` executes something, after a pause for instance.
    pub fn runs(&mut self, who: Who, now: Counts) {
        self.at(who, now);
    }

    /// The last thing that was told was an exception, which `who` has taken to EL2.
    pub fn exits(&mut self, cause: Cause) {
        self.exits[cause as usize] += 1;
    }

    /// `who` stores to `address`, for others to see.
    pub fn stores(&mut self, who: Who, now: Counts, address: u64) {
        let release = self.releases(who, now);
        self.stores.insert(address, release);
    }

    /// `who` loads from `address` what others may have stored.
    pub fn loads(&mut self, who: Who, now: Counts, address: u64) {
        let cpu = self.at(who, now);
        if let Some(&release) = self.stores.get(&address) {
            self.link(cpu, release);
        }
    }

    /// `who` sends an interrupt: `value` is written to ICC_SGI1R_EL1.
    pub fn sends(&mut self, who: Who, now: Counts, value: u64) {
        let release = self.releases(who, now);
        self.sends.push((release, value));
    }

    /// `who` takes an interrupt.
    pub fn acknowledges(&mut self, who: Who, now: Counts) {
        let cpu = self.at(who, now);
        let affinity = self.cpus[cpu].affinity;
        let mut sends = self.sends.iter().rev();
        let found = sends.find(|(_, value)| is_for(*value, affinity));
        if let Some(&(release, _)) = found {
            self.link(cpu, release);
        }
    }

    fn cpu(&mut self, who: Who) -> usize {
        let known = self.cpus.iter().position(|cpu| cpu.who == who);
        known.unwrap_or_else(|| {
            self.cpus.push(Cpu {
                who,
                affinity: None,
                clock: Counts::default(),
                resumed: Counts::default(),
                stopped: 0,
                linked: false,
                heard: Counts::default(),
                open: None,
                ended: None,
            });
            self.cpus.len() - 1
        })
    }

    /// Before the first of the samples that are open nothing matters.
    fn forget(&mut self, now: Counts) {
        self.stores.clear();
        self.sends.clear();
        self.last = now;
        self.current = None;
        self.paused = false;
        for cpu in &mut self.cpus {
            cpu.clock = Counts::default();
            cpu.resumed = Counts::default();
            cpu.heard = Counts::default();
            cpu.linked = false;
            cpu.stopped = now.total();
        }
    }

    /// What was executed since the last time goes to the clock of the CPU that
    /// did: that is `who`, unless CPUs changed where none paused.
    fn at(&mut self, who: Who, now: Counts) -> usize {
        let cpu = self.cpu(who);
        let executed = now.since(self.last);
        if self.current != Some(cpu) {
            if let Some(other) = self.current {
                self.cpus[other].stopped = self.last.total();
                if !self.paused {
                    let open = self.cpus.iter_mut().filter_map(|cpu| cpu.open.as_mut());
                    open.for_each(|open| open.unclear = true);
                }
            }
            self.current = Some(cpu);
            let this = &mut self.cpus[cpu];
            this.resumed = this.clock;
            this.linked = false;
        }
        self.last = now;
        self.paused = false;
        let this = &mut self.cpus[cpu];
        this.clock = this.clock.plus(executed);
        cpu
    }

    fn releases(&mut self, who: Who, now: Counts) -> Release {
        let cpu = self.at(who, now);
        let this = &mut self.cpus[cpu];
        this.heard = Counts::default();
        Release {
            cpu,
            clock: this.clock,
            at: now.total(),
        }
    }

    /// `cpu` has found `release`: its clock follows, if it waited meanwhile and this is
    /// the first thing that it finds since. What it finds later is no cause: the word of
    /// another CPU, for instance, which that one has changed before it waits.
    fn link(&mut self, cpu: usize, release: Release) {
        let this = &mut self.cpus[cpu];
        if this.linked || release.cpu == cpu || release.at < this.stopped {
            return;
        }
        let since = this.clock.since(this.resumed);
        this.heard = later(release.clock, this.heard);
        this.clock = this.heard.plus(since);
        this.linked = true;
    }
}

fn later(one: Counts, other: Counts) -> Counts {
    match one.total() < other.total() {
        true => other,
        false => one,
    }
}

/// Whether an interrupt is for the CPU of this affinity (IHI 0069H, 12.2.20); one
/// whose affinity is not known may be meant.
fn is_for(value: u64, affinity: Option<u64>) -> bool {
    let Some(affinity) = affinity else {
        return true;
    };
    let (aff0, aff1) = (affinity & 0xff, affinity >> 8 & 0xff);
    let range = value >> 44 & 0xf;
    let listed = aff0 >> 4 == range && value >> (aff0 & 0xf) & 1 != 0;
    value & ALL_OTHERS != 0 || value >> 16 & 0xff == aff1 && listed
}

#[cfg(test)]
mod tests;
