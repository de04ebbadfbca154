// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes listed interrupts for registers that show or change pending states, active
//! states or priorities.

use super::{Bank, List};
use crate::PRIVATE;
use crate::bits::ones;
use crate::lr::ListRegister;
use crate::lr_cache::{Listed, mask};

/// State of an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Waits to be acknowledged.
    pub pending: bool,
    /// Acknowledged and not ended.
    pub active: bool,
}

/// The private INTIDs that are listed or wait for a register, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Here {
    /// Pending.
    pub pending: u32,
    /// Active.
    pub active: u32,
    /// Pending or active only because of their lines.
    pub lines: u32,
}

impl List {
    /// Gives every pending interrupt the priority, if any, that `of` returns for its INTID.
    /// A new priority must take effect in finite time (12.9, GICD_IPRIORITYR\<n\>), and a
    /// masked interrupt would otherwise never be acknowledged.
    pub(crate) fn reprioritise(&mut self, bank: &mut impl Bank, of: impl Fn(u32) -> Option<u8>) {
        let used = !bank.empty() & mask(bank.count());
        for slot in ones(used.into()) {
            let listed = bank.read(slot as usize);
            let changed = of(listed.intid()).filter(|&new| new != listed.priority());
            let Some(priority) = changed.filter(|_| listed.is_pending()) else {
                continue;
            };
            let value = listed.with_priority(priority);
            if listed.is_active() {
                bank.write(slot as usize, ListRegister::EMPTY);
                self.queue.push(value);
            } else {
                bank.write(slot as usize, value);
            }
        }
        for waiting in &mut self.queue {
            let priority = of(waiting.intid()).unwrap_or(waiting.priority());
            *waiting = waiting.with_priority(priority);
        }
    }

    /// The value of `intid` in its register or in the queue.
    pub(crate) fn entry(&self, bank: &impl Bank, intid: u32) -> ListRegister {
        let listed = Listed::read(bank).find(intid).map(|(_, one)| one);
        let queued = || self.find_queued(intid).map(|at| self.queue[at]);
        listed.or_else(queued).unwrap_or(ListRegister::EMPTY)
    }

    /// The state of `intid`.
    pub fn state(&self, bank: &impl Bank, intid: u32) -> State {
        let one = self.entry(bank, intid);
        State {
            pending: one.is_pending(),
            active: one.is_active(),
        }
    }

    /// Whether any interrupt is active.
    pub(crate) fn has_active(&self, bank: &impl Bank) -> bool {
        let listed = Listed::read(bank).registers;
        let mut all = listed.iter().map(|(_, one)| one).chain(&self.queue);
        all.any(|one| one.is_active())
    }

    /// Returns the listed private INTIDs.
    pub(crate) fn private_states(&self, bank: &impl Bank) -> Here {
        let mut here = Here::default();
        if self.queue.is_empty() && bank.empty() & mask(bank.count()) == mask(bank.count()) {
            return here;
        }
        let listed = Listed::read(bank);
        let listed = listed.registers.iter().map(|(_, one)| one);
        for one in listed
            .chain(&self.queue)
            .filter(|one| one.intid() < PRIVATE)
        {
            let bit = 1 << one.intid();
            here.pending |= if one.is_pending() { bit } else { 0 };
            here.active |= if one.is_active() { bit } else { 0 };
            here.lines |= if one.hw().is_some() { bit } else { 0 };
        }
        here
    }

    /// Sets or clears the active state of `intid`, as software may do by a register write.
    pub fn set_active(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, active: bool) {
        let mut listed = Listed::read(bank);
        match (listed.find(intid), self.find_queued(intid)) {
            (Some((slot, old)), _) if !active => listed.set(bank, slot, old.without_active()),
            (Some((_, old)), _) if old.is_active() => {}
            (Some((slot, old)), _) => {
                listed.set(bank, slot, ListRegister::EMPTY);
                self.queue.push(old.with_active());
            }
            (None, Some(at)) if active => self.queue[at] = self.queue[at].with_active(),
            (None, Some(at)) => self.set_queued(at, self.queue[at].without_active()),
            (None, None) if active => {
                let new = ListRegister::pending(intid, priority, None);
                self.queue.push(new.after_acknowledge());
            }
            (None, None) => {}
        }
        self.refill_from(&mut listed, bank);
    }

    /// Clears the active state of `intid`, as the guest does when it ends the interrupt; returns
    /// the value of the list register that held it.
    pub(crate) fn deactivate(&mut self, bank: &mut impl Bank, intid: u32) -> Option<ListRegister> {
        let mut listed = Listed::read(bank);
        let old = match (listed.find(intid), self.find_queued(intid)) {
            (Some((slot, old)), _) => {
                listed.set(bank, slot, old.without_active());
                old
            }
            (None, Some(at)) => {
                let old = self.queue[at];
                self.set_queued(at, old.without_active());
                old
            }
            (None, None) => return None,
        };
        self.refill_from(&mut listed, bank);
        old.is_active().then_some(old)
    }
}
