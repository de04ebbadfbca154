// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records which interrupts are in list registers, and which wait in the queue for one.
//!
//! A guest must not see how many list registers there are. So if every register holds an active
//! interrupt, a pending interrupt takes one of these registers. An active interrupt in the queue
//! stays there until it ends, and until then each access by the guest to its CPU interface traps:
//! hardware would not know which interrupt an end refers to (12.4.5, EOIcount). An active interrupt
//! is also in the queue if a register can't represent its state: on a write of ICC_EOIR1_EL1,
//! hardware deactivates the interrupt with the running priority (12.2, ICV_EOIR1_EL1). So the
//! priority of an active interrupt must not change in a register; and an interrupt that software
//! has set active has no running priority.
//!
//! Rules that always hold between calls:
//! - no INTID is in two list registers, nor in a list register and in the queue;
//! - the most urgent interrupt that can be acknowledged is in a list register;
//! - while an interrupt that can be acknowledged is in the queue, the bank is asked for a maintenance
//!   interrupt as soon as no register is in the pending state;
//! - while an active interrupt is in the queue, the bank is asked to trap accesses to the CPU interface.
//!
//! For each private INTID, the list remembers the register that held it last, and the value for that
//! register at the next arrival. So an SGI that arrives repeatedly takes the same register without a
//! search: a load, a check that the register is empty, and a write suffice ([`List::arrive`]). A hypervisor
//! may do that in assembly, with the offsets that [`List`] has as constants.
//!
//! Registers are slow to read, so each operation reads what it needs once.

mod refill;
mod states;

pub use states::State;

use core::mem::offset_of;

use arrayvec::ArrayVec;

use crate::bits::ones;
use crate::lr::{Asked, Bank, ListRegister};
use crate::lr_cache::{Listed, mask};
use crate::{INTIDS, PRIVATE};

/// Maximum number of interrupts without a register: all INTIDs.
const QUEUE: usize = INTIDS as usize;

/// How a private INTID is listed when it arrives.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Arrival {
    /// Value for the list register; [`ListRegister::EMPTY`] if more has to be done.
    value: ListRegister,
    /// Number of the register that holds the INTID, or held it last.
    slot: u64,
}

/// Interrupts in one vCPU's list registers, and interrupts in its queue.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct List {
    /// Private INTIDs below this limit need no check of the queue: all of them or, while an
    /// interrupt waits, none (limit 0).
    straight: u64,
    asked: Asked,
    /// Whether there are active SPIs that no list holds; this CPU may end them.
    pub(crate) others: bool,
    /// Copy of each INTID's value if its register is the first, otherwise [`ListRegister::EMPTY`].
    firsts: [ListRegister; PRIVATE as usize],
    arrivals: [Arrival; PRIVATE as usize],
    /// Interrupts that are pending or active and have no register.
    queue: ArrayVec<ListRegister, QUEUE>,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// Returns an empty list.
    #[must_use]
    pub const fn new() -> Self {
        const NOT_YET: Arrival = Arrival {
            value: ListRegister::EMPTY,
            slot: 0,
        };
        Self {
            straight: PRIVATE as u64,
            asked: Asked {
                refill: false,
                traps: false,
            },
            others: false,
            firsts: [ListRegister::EMPTY; PRIVATE as usize],
            arrivals: [NOT_YET; PRIVATE as usize],
            queue: ArrayVec::new_const(),
        }
    }

    /// Returns the last requests to the bank.
    pub(crate) const fn requests(&self) -> Asked {
        self.asked
    }

    /// Returns the interrupts without a list register.
    pub(crate) fn queued(&self) -> &[ListRegister] {
        &self.queue
    }

    /// Offset of the 64-bit INTID below which a private interrupt may be listed without a check
    /// of the queue.
    pub const STRAIGHT: usize = offset_of!(Self, straight);
    /// Offset of the values (64 bits each, from INTID 0 on) that the first register gets when an
    /// INTID arrives; a value is 0 if the INTID goes to another register, or if more has to be done.
    pub const FIRSTS: usize = offset_of!(Self, firsts);
    /// Offset of the 64-bit value that a register gets when INTID 0 arrives; 0 if more has to be done.
    pub const ARRIVALS: usize = offset_of!(Self, arrivals) + offset_of!(Arrival, value);
    /// Offset of the 64-bit number of the register that INTID 0 gets when it arrives.
    pub const ARRIVAL_SLOTS: usize = offset_of!(Self, arrivals) + offset_of!(Arrival, slot);
    /// Binary logarithm of the bytes from one INTID's entry to the next, for `ARRIVALS` and `ARRIVAL_SLOTS`.
    pub const ARRIVAL_SHIFT: u32 = size_of::<Arrival>().trailing_zeros();

    /// Sets the value with which private `intid` is listed when it arrives; `None` if more, or nothing,
    /// has to be done.
    pub fn expect_arrival(&mut self, intid: u32, value: Option<ListRegister>) {
        self.arrivals[intid as usize].value = value.unwrap_or(ListRegister::EMPTY);
        self.update_first(intid as usize);
    }

    /// Updates the entry of `intid` at [`Self::FIRSTS`].
    fn update_first(&mut self, intid: usize) {
        let Arrival { value, slot } = self.arrivals[intid];
        self.firsts[intid] = if slot == 0 {
            value
        } else {
            ListRegister::EMPTY
        };
    }

    /// Lists private `intid` with the value of [`List::expect_arrival`], if its register is empty
    /// and nothing waits; returns whether it was listed. Assembly code may do this instead; a
    /// hypervisor without that code uses this function.
    #[inline(always)]
    pub fn arrive(&mut self, bank: &mut impl Bank, intid: u32) -> bool {
        let Arrival { value, slot } = self.arrivals[intid as usize];
        let free = bank.empty() >> slot & 1 != 0;
        let simple = free && u64::from(intid) < self.straight && value != ListRegister::EMPTY;
        if simple {
            bank.write_last(slot as usize, value);
        }
        simple
    }

    /// Returns the value for the first register with which `intid` is listed when it arrives, if this register is
    /// empty; `None` if more has to be done.
    #[must_use]
    #[inline(always)]
    pub fn first_arrival(&self, intid: u32) -> Option<ListRegister> {
        // `straight` is at most the number of private INTIDs, a power of two, so `%` is a mask, and changes nothing.
        let value = self.firsts[intid as usize % self.firsts.len()];
        (u64::from(intid) < self.straight && value != ListRegister::EMPTY).then_some(value)
    }

    /// Makes `intid` pending; `hw` is the physical INTID that it is mapped to.
    pub fn inject(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, hw: Option<u32>) {
        self.inject_value(bank, ListRegister::pending(intid, priority, hw));
    }

    /// Makes the pending interrupt `new` pending.
    pub(crate) fn inject_value(&mut self, bank: &mut impl Bank, new: ListRegister) {
        match self.last_register(bank, new.intid()) {
            Some(slot) => bank.write(slot, new),
            None => self.inject_anywhere(bank, new),
        }
    }

    /// Like [`Self::inject`], for callers that execute a context synchronization event next ([`Bank::write_last`]).
    #[inline(always)]
    pub fn inject_last(&mut self, bank: &mut impl Bank, intid: u32, priority: u8, hw: Option<u32>) {
        let new = ListRegister::pending(intid, priority, hw);
        match self.last_register(bank, intid) {
            Some(slot) => bank.write_last(slot, new),
            None => self.inject_anywhere(bank, new),
        }
    }

    /// Returns the register where `intid` was listed last, if that register is empty and nothing waits.
    #[inline(always)]
    fn last_register(&self, bank: &impl Bank, intid: u32) -> Option<usize> {
        if u64::from(intid) >= self.straight {
            return None;
        }
        let slot = self.arrivals[intid as usize].slot as usize;
        (bank.empty() >> slot & 1 != 0).then_some(slot)
    }

    #[cold]
    fn inject_anywhere(&mut self, bank: &mut impl Bank, new: ListRegister) {
        let mut listed = Listed::read(bank);
        match (listed.find(new.intid()), self.find_queued(new.intid())) {
            (Some((slot, old)), _) => {
                let value = old.merged_with(new);
                if old.is_active() && value.priority() != old.priority() {
                    listed.set(bank, slot, ListRegister::EMPTY);
                    self.queue.push(value);
                } else {
                    listed.set(bank, slot, value);
                }
            }
            (None, Some(at)) => self.queue[at] = self.queue[at].merged_with(new),
            (None, None) => self.queue.push(new),
        }
        self.refill_from(&mut listed, bank);
    }

    /// Returns the position of `intid` in the queue.
    fn find_queued(&self, intid: u32) -> Option<usize> {
        self.queue.iter().position(|one| one.intid() == intid)
    }

    /// Replaces the entry at `at` in the queue, or removes it if `value` has no state.
    fn set_queued(&mut self, at: usize, value: ListRegister) {
        if value == ListRegister::EMPTY {
            self.queue.swap_remove(at);
        } else {
            self.queue[at] = value;
        }
    }

    /// Clears the pending state of `intid`; returns the value of the list register that held the interrupt.
    pub fn withdraw(&mut self, bank: &mut impl Bank, intid: u32) -> Option<ListRegister> {
        if let Some(at) = self.find_queued(intid) {
            let old = self.queue[at];
            self.set_queued(at, old.without_pending());
            self.refill(bank);
            return old.is_pending().then_some(old);
        }
        let mut listed = Listed::read(bank);
        let (slot, old) = listed.find(intid)?;
        listed.set(bank, slot, old.without_pending());
        self.refill_from(&mut listed, bank);
        old.is_pending().then_some(old)
    }

    /// Removes the interrupts that no longer have a cause: pending interrupts in `low` (their lines
    /// are low) that software did not make pending. Returns them; the caller has to deactivate their
    /// physical interrupts, which are active.
    #[must_use]
    pub fn lower(&mut self, bank: &mut impl Bank, low: u32) -> u32 {
        let mut lowered = 0;
        for intid in ones(low.into()) {
            let listed = Listed::read(bank).find(intid).map(|(_, one)| one);
            let queued = || self.queue.iter().find(|one| one.intid() == intid).copied();
            let line = |one: &ListRegister| one.is_pending() && one.hw().is_some();
            if listed.or_else(queued).as_ref().is_some_and(line) {
                self.withdraw(bank, intid);
                lowered |= 1 << intid;
            }
        }
        lowered
    }

    /// Requests a maintenance interrupt that is due when the guest ends `intid`: ICH_EISR_EL2 then
    /// shows the end, and the CPU must call [`Self::sync_spis`] instead of [`Self::refill`].
    pub(crate) fn request_end_notice(&mut self, bank: &mut impl Bank, intid: u32) {
        if let Some(at) = self.find_queued(intid) {
            self.queue[at] = self.queue[at].with_end_notice();
        } else if let Some((slot, one)) = Listed::read(bank).find(intid) {
            bank.write(slot, one.with_end_notice());
        }
    }

    /// Empties the registers whose interrupts have signalled their end.
    pub(crate) fn clear_ended(&self, bank: &mut impl Bank) {
        // A register that signals an end does not count as empty (12.4, ICH_ELRSR_EL2).
        let used = !bank.empty() & mask(bank.count());
        for slot in ones(used.into()) {
            if bank.read(slot as usize).has_ended() {
                bank.write(slot as usize, ListRegister::EMPTY);
            }
        }
    }

    /// Whether an interrupt waits to be acknowledged.
    #[inline(always)]
    pub fn deliverable(&self, bank: &impl Bank) -> bool {
        let used = !bank.empty() & mask(bank.count());
        used != 0 && any_pending(bank, used)
    }

    /// Removes every pending interrupt and passes it to `each`.
    pub fn drain(&mut self, bank: &mut impl Bank, mut each: impl FnMut(ListRegister)) {
        for (slot, old) in Listed::read(bank).registers {
            if old.is_pending() {
                each(old);
                bank.write(slot, old.without_pending());
            }
        }
        for one in &mut self.queue {
            if one.is_pending() {
                each(*one);
                *one = one.without_pending();
            }
        }
        self.queue.retain(|one| one.is_active());
        self.others = false;
        self.update_requests(bank);
    }
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

#[cfg(test)]
pub(crate) mod tests;
