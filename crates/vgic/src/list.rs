// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interrupts are in list registers.
//!
//! Rules that always hold between two calls:
//! - no INTID is in two list registers, nor in a list register as pending and
//!   in the queue;
//! - the most urgent pending interrupt is in a list register, unless every one
//!   of them holds an active interrupt;
//! - while the queue has something that could be listed, the bank is asked to
//!   raise the maintenance interrupt when its registers run empty (underflow).
//!   What is queued and still active as a hardware interrupt can't be: asking
//!   for it would raise the interrupt without end, before the guest gets to
//!   deactivate it. It is listed at the next call after that.
//!
//! Each private INTID remembers where it was last: an SGI that comes again and
//! again takes the same register without a search.

use arrayvec::ArrayVec;

use crate::lr::ListRegister;
use crate::{INTIDS, PRIVATE};

/// The list registers of a CPU.
pub trait Bank {
    /// How many there are, 1 to 16.
    fn count(&self) -> usize;
    /// Bit n: register n is empty and does not say that its interrupt has ended
    /// (ICH_ELRSR_EL2).
    fn empty(&self) -> u32;
    /// Register `n`.
    fn read(&self, n: usize) -> ListRegister;
    /// Sets register `n`.
    fn write(&mut self, n: usize, value: ListRegister);
    /// Whether the maintenance interrupt comes when at most one register is in
    /// use (ICH_HCR_EL2.UIE).
    fn set_underflow(&mut self, on: bool);
}

/// State of an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Waits to be acknowledged.
    pub pending: bool,
    /// Acknowledged and not ended.
    pub active: bool,
}

/// Most interrupts that wait for a register: every INTID that there is.
const QUEUE: usize = INTIDS as usize;

/// What is in the list registers of one vCPU, and what waits for one.
#[derive(Clone, Debug)]
pub struct List {
    /// Where a private INTID is, if it is listed, or was last.
    slot: [u8; PRIVATE as usize],
    queue: ArrayVec<ListRegister, QUEUE>,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// Nothing is listed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slot: [0; PRIVATE as usize],
            queue: ArrayVec::new_const(),
        }
    }

    /// What waits for a list register.
    pub(crate) fn queued(&self) -> &[ListRegister] {
        &self.queue
    }

    /// Makes `intid` pending; `hw` is the physical INTID behind it.
    #[inline(always)]
    pub fn inject(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, hw: Option<u32>) {
        if intid < PRIVATE && self.queue.is_empty() {
            let slot = usize::from(self.slot[intid as usize]);
            if bank.empty() >> slot & 1 != 0 {
                bank.write(slot, ListRegister::pending(intid, priority, hw));
                return;
            }
        }
        self.inject_anywhere(bank, ListRegister::pending(intid, priority, hw));
    }

    #[cold]
    fn inject_anywhere(&mut self, bank: &mut impl Bank, new: ListRegister) {
        if let Some(slot) = find(bank, new.intid()) {
            let listed = bank.read(slot);
            if listed.hw().is_none() || !listed.is_active() {
                bank.write(slot, listed.with_priority(new.priority()).with_pending());
                if !self.queue.is_empty() {
                    self.refill(bank);
                }
                return;
            }
        }
        let queued = self.queue.iter().any(|one| one.intid() == new.intid());
        if !queued {
            self.queue.push(new);
        }
        self.refill(bank);
    }

    /// Lists what waits, as far as there is room for it or it is more urgent
    /// than what is listed. To be called on the maintenance interrupt.
    pub fn refill(&mut self, bank: &mut impl Bank) {
        let more = loop {
            let Some(next) = self.most_urgent(bank) else {
                break false;
            };
            let waiting = self.queue[next];
            let Some(slot) = free(bank).or_else(|| less_urgent(bank, waiting)) else {
                break true;
            };
            let evicted = bank.read(slot);
            bank.write(slot, waiting);
            if waiting.intid() < PRIVATE {
                self.slot[waiting.intid() as usize] = slot as u8;
            }
            if evicted.is_pending() {
                self.queue[next] = evicted;
            } else {
                self.queue.swap_remove(next);
            }
        };
        bank.set_underflow(more);
    }

    /// The most urgent one that waits and is not still active in a register.
    fn most_urgent(&self, bank: &impl Bank) -> Option<usize> {
        let waiting = self.queue.iter().enumerate();
        waiting
            .filter(|(_, one)| find(bank, one.intid()).is_none())
            .min_by_key(|(_, one)| (one.priority(), one.intid()))
            .map(|(index, _)| index)
    }

    /// Gives every pending interrupt the priority that `of` names for its INTID,
    /// if it names one. A new priority must count in finite time (12.9.20), and
    /// one that is masked would otherwise never be acknowledged.
    pub(crate) fn reprioritise(&mut self, bank: &mut impl Bank, of: impl Fn(u32) -> Option<u8>) {
        for slot in 0..bank.count() {
            let listed = bank.read(slot);
            let changed = of(listed.intid()).filter(|&new| new != listed.priority());
            if let Some(priority) = changed.filter(|_| listed.is_pending()) {
                bank.write(slot, listed.with_priority(priority));
            }
        }
        for waiting in &mut self.queue {
            let priority = of(waiting.intid()).unwrap_or(waiting.priority());
            *waiting = waiting.with_priority(priority);
        }
    }

    /// Takes the pending state from `intid`; whether it had it.
    pub fn withdraw(&mut self, bank: &mut impl Bank, intid: u32) -> bool {
        if let Some(at) = self.queue.iter().position(|one| one.intid() == intid) {
            self.queue.swap_remove(at);
            self.refill(bank);
            return true;
        }
        let Some(slot) = find(bank, intid) else {
            return false;
        };
        let listed = bank.read(slot);
        bank.write(slot, listed.without_pending());
        self.refill(bank);
        listed.is_pending()
    }

    /// The state of `intid`.
    pub fn state(&self, bank: &impl Bank, intid: u32) -> State {
        let listed = find(bank, intid).map_or(ListRegister::EMPTY, |slot| bank.read(slot));
        State {
            pending: listed.is_pending() || self.queue.iter().any(|one| one.intid() == intid),
            active: listed.is_active(),
        }
    }

    /// Sets or clears the active state of `intid`, as software may by register.
    /// Without a free register an activation is lost: the machine has no place
    /// for it.
    pub fn set_active(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, active: bool) {
        if let Some(slot) = find(bank, intid) {
            let listed = bank.read(slot);
            let value = if active {
                listed.with_active()
            } else {
                listed.without_active()
            };
            bank.write(slot, value);
        } else if let Some(slot) = free(bank).filter(|_| active) {
            // What the free register still holds besides its state is of an
            // interrupt that ended, and no matter here.
            bank.write(slot, self.unqueue_as_active(intid, priority));
            if intid < PRIVATE {
                self.slot[intid as usize] = slot as u8;
            }
        }
        self.refill(bank);
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

    /// Has the maintenance interrupt come when the guest ends `intid`: it says so
    /// in ICH_EISR_EL2, and [`Self::sync_spis`] is due, not [`Self::refill`].
    pub(crate) fn notice_end(&self, bank: &mut impl Bank, intid: u32) {
        if let Some(slot) = find(bank, intid) {
            bank.write(slot, bank.read(slot).with_notice());
        }
    }

    /// Empties the registers whose interrupts have ended and say so.
    pub(crate) fn clear_ended(&self, bank: &mut impl Bank) {
        for slot in 0..bank.count() {
            if bank.read(slot).has_ended() {
                bank.write(slot, ListRegister::EMPTY);
            }
        }
    }

    /// Whether an interrupt waits to be acknowledged.
    #[inline(always)]
    pub fn deliverable(&self, bank: &impl Bank) -> bool {
        let used = !bank.empty() & mask(bank.count());
        used != 0 && any_pending(bank, used)
    }

    /// Takes every pending interrupt out and gives it to `each`.
    pub fn drain(&mut self, bank: &mut impl Bank, mut each: impl FnMut(ListRegister)) {
        for slot in 0..bank.count() {
            let listed = bank.read(slot);
            if listed.is_pending() {
                each(listed);
                bank.write(slot, listed.without_pending());
            }
        }
        self.queue.drain(..).for_each(each);
        bank.set_underflow(false);
    }
}

const fn mask(count: usize) -> u32 {
    (1 << count) - 1
}

fn any_pending(bank: &impl Bank, mut used: u32) -> bool {
    while used != 0 {
        if bank.read(used.trailing_zeros() as usize).is_pending() {
            return true;
        }
        used &= used - 1;
    }
    false
}

/// The register that holds `intid`.
fn find(bank: &impl Bank, intid: u32) -> Option<usize> {
    (0..bank.count()).find(|&slot| {
        let listed = bank.read(slot);
        (listed.is_pending() || listed.is_active()) && listed.intid() == intid
    })
}

fn free(bank: &impl Bank) -> Option<usize> {
    let empty = bank.empty() & mask(bank.count());
    (empty != 0).then(|| empty.trailing_zeros() as usize)
}

/// The register with the least urgent interrupt that is only pending, if it is
/// less urgent than `than`.
fn less_urgent(bank: &impl Bank, than: ListRegister) -> Option<usize> {
    (0..bank.count())
        .map(|slot| (slot, bank.read(slot)))
        .filter(|(_, listed)| listed.is_pending() && !listed.is_active())
        .max_by_key(|(_, listed)| (listed.priority(), listed.intid()))
        .filter(|(_, listed)| listed.priority() > than.priority())
        .map(|(slot, _)| slot)
}

#[cfg(test)]
#[path = "list_tests.rs"]
pub(crate) mod tests;
