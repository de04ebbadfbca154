// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves interrupts from the queue to list registers.

use super::List;
use crate::PRIVATE;
use crate::lr::{Asked, Bank};
use crate::lr_cache::{Listed, mask};

impl List {
    /// Serves the maintenance interrupt; returns whether it was requested because an interrupt was
    /// waiting. A context synchronization event has to follow, as after [`Bank::write_last`].
    #[inline(always)]
    pub fn maintain(&mut self, bank: &mut impl Bank) -> bool {
        let asked = self.asked.refill;
        if asked && !self.list_only_one(bank) {
            self.refill_from_queue(bank);
        }
        asked
    }

    /// Lists the interrupt that waits, if the queue holds nothing else and the register where it was listed last is
    /// empty; returns whether it did. All other interrupts that can be acknowledged are in registers, so there is
    /// nothing to choose.
    #[inline(always)]
    fn list_only_one(&mut self, bank: &mut impl Bank) -> bool {
        let [only] = *self.queue.as_slice() else {
            return false;
        };
        let Some(arrival) = self.arrivals.get(only.intid() as usize) else {
            return false;
        };
        let slot = arrival.slot;
        if bank.empty() >> slot & 1 == 0 {
            return false;
        }
        debug_assert!(only.is_waiting(), "asked for by another interrupt");
        bank.write_last(slot as usize, only);
        self.queue.clear();
        self.straight = PRIVATE.into();
        // No active interrupt leaves the queue, so the traps stay.
        self.asked.refill = false;
        bank.ask(self.asked);
        true
    }

    /// Lists interrupts that can be acknowledged, if a register is free or they are more urgent than
    /// listed ones.
    #[inline(always)]
    pub fn refill(&mut self, bank: &mut impl Bank) {
        match self.queue.is_empty() {
            true => self.update_requests(bank),
            false => self.refill_from_queue(bank),
        }
    }

    #[inline(never)]
    fn refill_from_queue(&mut self, bank: &mut impl Bank) {
        // While a register is free, the contents of all other registers do not matter.
        let mut free = bank.empty() & mask(bank.count());
        while let Some(next) = self.most_urgent() {
            if free == 0 {
                return self.refill_from(&mut Listed::read(bank), bank);
            }
            let slot = free.trailing_zeros() as usize;
            free &= free - 1;
            self.list_queued(bank, slot, next);
        }
        self.update_requests(bank);
    }

    /// Moves the entry at `next` in the queue to a free register.
    fn list_queued(&mut self, bank: &mut impl Bank, slot: usize, next: usize) {
        let waiting = self.queue.swap_remove(next);
        bank.write(slot, waiting);
        self.remember_slot(waiting.intid(), slot);
    }

    /// Like [`Self::refill`]; `listed` has the values read from the registers.
    pub(super) fn refill_from(&mut self, listed: &mut Listed, bank: &mut impl Bank) {
        while let Some(next) = self.most_urgent() {
            let waiting = self.queue[next];
            let Some((slot, evicted)) = listed.slot_for(waiting) else {
                break;
            };
            listed.set(bank, slot, waiting);
            self.remember_slot(waiting.intid(), slot);
            self.set_queued(next, evicted);
        }
        self.update_requests(bank);
    }

    /// Brings the requests to the bank in line with the queue. Must be called after each change of the queue.
    pub(super) fn update_requests(&mut self, bank: &mut impl Bank) {
        self.straight = if self.queue.is_empty() {
            PRIVATE.into()
        } else {
            0
        };
        let mut queue = self.queue.iter();
        let asked = Asked {
            refill: queue.clone().any(|one| one.is_waiting()),
            traps: self.others || queue.any(|one| one.is_active()),
        };
        if self.asked != asked {
            self.asked = asked;
            bank.ask(asked);
        }
    }

    /// Records the register of `intid`.
    pub(super) fn remember_slot(&mut self, intid: u32, slot: usize) {
        if let Some(arrival) = self.arrivals.get_mut(intid as usize) {
            arrival.slot = slot as u64;
            self.update_first(intid as usize);
        }
    }

    /// Returns the most urgent interrupt that waits for a register.
    pub(super) fn most_urgent(&self) -> Option<usize> {
        let queue = self.queue.iter().enumerate();
        queue
            .filter(|(_, one)| one.is_waiting())
            .min_by_key(|(_, one)| (one.priority(), one.intid()))
            .map(|(index, _)| index)
    }
}
