// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores and interrupts of a CPU for which another CPU may be waiting.

use super::Cutter;
use super::state::{CpuState, Release};
use crate::clock::{Clock, Via};
use crate::{Counts, Tpidr};

/// ICC_SGI1R_EL1.IRM: the SGI is sent to all CPUs except the sender (IHI 0069H, 12.2.20).
pub(super) const ALL_OTHERS: u64 = 1 << 40;

/// Returns the value of ICC_SGI1R_EL1 that sends the same SGI as a store of `value` to GICD_SGIR (IHI 0048B, 4.3.15).
/// CPU interface n is assumed to belong to the CPU with affinity n. Returns `None` if the sender is the only target.
#[must_use]
pub const fn sgi_of_version2(value: u64) -> Option<u64> {
    match value >> 24 & 3 {
        0 => Some((value & 0xf) << 24 | value >> 16 & 0xff),
        1 => Some((value & 0xf) << 24 | ALL_OTHERS),
        _ => None,
    }
}

impl Cutter {
    /// Records that this CPU stores to `address`, from which other CPUs may load.
    pub fn record_store(&mut self, tpidr: Tpidr, now: Counts, address: u64) {
        let release = self.make_release(tpidr, now);
        self.stores.insert(address, release);
    }

    /// Records that this CPU loads from `address`, to which other CPUs may have stored.
    pub fn record_load(&mut self, tpidr: Tpidr, now: Counts, address: u64) {
        let cpu = self.advance_to(tpidr, now);
        self.cpus[cpu].looked = true;
        if let Some(release) = self.stores.get(&address).cloned() {
            self.link_release(cpu, &release, Via::Store);
        }
    }

    /// Records that this CPU sends an interrupt by writing `value` to ICC_SGI1R_EL1.
    pub fn record_send(&mut self, tpidr: Tpidr, now: Counts, value: u64) {
        let release = self.make_release(tpidr, now);
        self.sends.push((release, value));
    }

    /// Records that this CPU takes an interrupt. It was this interrupt that ended the CPU's wait, not a store that the
    /// handler finds before it [acknowledges](Self::record_acknowledge) the interrupt: a hypervisor's handler takes
    /// locks at that point.
    pub fn record_interrupt(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.advance_to(tpidr, now);
        if let Some(release) = self.last_interrupt_to(cpu) {
            self.link_release(cpu, &release, Via::Interrupt);
        }
    }

    /// Records that this CPU acknowledges an interrupt.
    pub fn record_acknowledge(&mut self, tpidr: Tpidr, now: Counts) {
        let cpu = self.advance_to(tpidr, now);
        self.cpus[cpu].looked = true;
        if let Some(release) = self.last_interrupt_to(cpu) {
            self.link_release(cpu, &release, Via::Interrupt);
        }
    }

    /// Returns the last interrupt that was sent to CPU number `cpu`.
    fn last_interrupt_to(&self, cpu: usize) -> Option<Release> {
        let affinity = self.cpus[cpu].affinity;
        let mut sends = self.sends.iter().rev();
        let found = sends.find(|(release, value)| match affinity {
            Some(affinity) => sgi_is_for(*value, affinity),
            None => release.cpu != cpu,
        });
        found.map(|(release, _)| release.clone())
    }

    /// Returns a [`Release`] that this CPU makes now.
    fn make_release(&mut self, tpidr: Tpidr, now: Counts) -> Release {
        let cpu = self.advance_to(tpidr, now);
        self.released = now.total();
        let this = &mut self.cpus[cpu];
        this.heard = Clock::default();
        Release {
            cpu,
            clock: this.clock.clone(),
            at: now.total(),
        }
    }

    /// Records that `cpu` has found `release`. The clock of `cpu` continues from the release's clock under two
    /// conditions: `cpu` was waiting when the release happened, and this is the first release that it finds after the
    /// wait. A release that it finds later is not a cause: it may be a word that another CPU changed before that CPU's
    /// own wait.
    fn link_release(&mut self, cpu: usize, release: &Release, via: Via) {
        self.join_samples(cpu, release);
        let this = &mut self.cpus[cpu];
        if this.linked || release.cpu == cpu {
            return;
        }
        let Some(last) = this.wait.iter().rposition(|stop| stop.at <= release.at) else {
            return;
        };
        // A later release can't have ended an earlier stop.
        this.wait.drain(..last);
        let stop = this.wait[0];
        let (since, at) = (this.executed.minus(stop.resumed), stop.since);
        let samples = self.ordering_samples(cpu);
        let this = &mut self.cpus[cpu];
        this.heard = std::mem::take(&mut this.heard).later_clock(&release.clock, &samples);
        this.clock.continue_from(&this.heard, since, at, via);
        this.linked = true;
    }

    /// Returns the numbers of the samples by which the causes of a CPU are compared: its own sample, and then the
    /// oldest one.
    fn ordering_samples(&self, cpu: usize) -> Vec<u64> {
        let number = |cpu: &CpuState| cpu.open.as_ref().map(|open| open.number);
        let own = number(&self.cpus[cpu]);
        let oldest = self.cpus.iter().filter_map(number).min();
        own.into_iter().chain(oldest).collect()
    }

    /// Records that `cpu` has found `release`. If one of the two CPUs takes part in a sample that was open at the time
    /// of the release, the other CPU takes part from now on, too.
    fn join_samples(&mut self, cpu: usize, release: &Release) {
        let both = [cpu, release.cpu];
        let open = self.cpus.iter_mut().filter_map(|cpu| cpu.open.as_mut());
        let open = open.filter(|open| open.work.total() <= release.at);
        for open in open.filter(|open| both.iter().any(|cpu| open.parties.contains(cpu))) {
            open.parties.extend(both);
        }
    }
}

/// Whether a write of `value` to ICC_SGI1R_EL1 sends the SGI to the CPU with `affinity` (IHI 0069H, 12.2.20).
pub(crate) fn sgi_is_for(value: u64, affinity: u64) -> bool {
    let (aff0, aff1) = (affinity & 0xff, affinity >> 8 & 0xff);
    let range = value >> 44 & 0xf;
    let listed = aff0 >> 4 == range && value >> (aff0 & 0xf) & 1 != 0;
    value & ALL_OTHERS != 0 || value >> 16 & 0xff == aff1 && listed
}
