// SPDX-License-Identifier: MIT OR Apache-2.0
//! What software reads and writes of listed interrupts by register: pending and active
//! states, and priorities.

use super::{Bank, List};
use crate::PRIVATE;
use crate::bits::ones;
use crate::listed::{Listed, mask};
use crate::lr::ListRegister;

/// State of an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Waits to be acknowledged.
    pub pending: bool,
    /// Acknowledged and not ended.
    pub active: bool,
}

/// The private INTIDs that are listed or wait for a register, a bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Here {
    /// Pending.
    pub pending: u32,
    /// Active.
    pub active: u32,
    /// Either, because of their lines alone.
    pub lines: u32,
}

impl List {
    /// Gives every pending interrupt the priority that `of` names for its INTID,
    /// if it names one. A new priority must count in finite time (12.9,
    /// GICD_IPRIORITYR\<n\>), and one that is masked would otherwise never be acknowledged.
    pub(crate) fn reprioritise(&mut self, bank: &mut impl Bank, of: impl Fn(u32) -> Option<u8>) {
        let used = !bank.empty() & mask(bank.count());
        for slot in ones(used.into()) {
            let listed = bank.read(slot as usize);
            let changed = of(listed.intid()).filter(|&new| new != listed.priority());
            if let Some(priority) = changed.filter(|_| listed.is_pending()) {
                bank.write(slot as usize, listed.with_priority(priority));
            }
        }
        for waiting in &mut self.queue {
            let priority = of(waiting.intid()).unwrap_or(waiting.priority());
            *waiting = waiting.with_priority(priority);
        }
    }

    /// The state of `intid`.
    pub fn state(&self, bank: &impl Bank, intid: u32) -> State {
        let listed = Listed::read(bank).find(intid);
        let listed = listed.map_or(ListRegister::EMPTY, |(_, one)| one);
        State {
            pending: listed.is_pending() || self.queue.iter().any(|one| one.intid() == intid),
            active: listed.is_active(),
        }
    }

    /// What is listed of the private INTIDs.
    pub(crate) fn private(&self, bank: &impl Bank) -> Here {
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

    /// Sets or clears the active state of `intid`, as software may by register.
    /// Without a free register an activation is lost: the machine has no place
    /// for it.
    pub fn set_active(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, active: bool) {
        let mut listed = Listed::read(bank);
        if let Some((slot, old)) = listed.find(intid) {
            let value = if active {
                old.with_active()
            } else {
                old.without_active()
            };
            listed.set(bank, slot, value);
        } else if let Some(slot) = listed.free().filter(|_| active) {
            // What the free register still holds besides its state is of an
            // interrupt that ended, and no matter here.
            listed.set(bank, slot, self.unqueue_as_active(intid, priority));
            self.remember(intid, slot);
        }
        self.refill_from(&mut listed, bank);
    }

    /// `intid`, which is not listed, as active. It keeps the pending state if it
    /// waits in the queue, which it leaves: it could not be listed from there.
    fn unqueue_as_active(&mut self, intid: u32, priority: u8) -> ListRegister {
        match self.queue.iter().position(|one| one.intid() == intid) {
            Some(at) => self.queue.swap_remove(at).with_active(),
            None => ListRegister::pending(intid, priority, None)
                .with_active()
                .without_pending(),
        }
    }
}
