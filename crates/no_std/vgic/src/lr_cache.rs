// SPDX-License-Identifier: MIT OR Apache-2.0
//! A write-through cache of the list registers for one operation. The cache reads each register once,
//! since the registers are slow to read.

use arrayvec::ArrayVec;

use crate::bits::ones;
use crate::lr::Bank;
use crate::lr::ListRegister;

/// Returns the first `count` registers, one bit each.
pub const fn mask(count: usize) -> u32 {
    (1 << count) - 1
}

/// The registers that are in use, read once.
pub struct Listed {
    /// Number and value, in no particular order.
    pub registers: ArrayVec<(usize, ListRegister), 16>,
    /// Free registers, one bit each.
    empty: u32,
}

impl Listed {
    /// Reads the registers of `bank`.
    pub fn read(bank: &impl Bank) -> Self {
        let mut listed = Self::new();
        listed.fill(bank);
        listed
    }

    /// Returns an empty cache, before [`Self::fill`].
    pub const fn new() -> Self {
        Self {
            registers: ArrayVec::new_const(),
            empty: 0,
        }
    }

    /// Like [`Self::read`], in place: a returned value would be copied.
    pub fn fill(&mut self, bank: &impl Bank) {
        let all = mask(bank.count());
        self.empty = bank.empty() & all;
        for slot in ones((all & !self.empty).into()) {
            let one = bank.read(slot as usize);
            if one.is_pending() || one.is_active() {
                self.registers.push((slot as usize, one));
            }
        }
    }

    /// Sets a register, in the cache and in `bank`.
    pub fn set(&mut self, bank: &mut impl Bank, slot: usize, value: ListRegister) {
        bank.write(slot, value);
        if self.empty >> slot & 1 == 0 {
            self.registers.retain(|(at, _)| *at != slot);
        }
        if value.is_pending() || value.is_active() {
            self.registers.push((slot, value));
            self.empty &= !(1 << slot);
        } else {
            self.empty |= 1 << slot;
        }
    }

    /// Returns the register that holds `intid`, and its value.
    pub fn find(&self, intid: u32) -> Option<(usize, ListRegister)> {
        let mut registers = self.registers.iter();
        registers.find(|(_, one)| one.intid() == intid).copied()
    }

    /// Chooses a register for `waiting`, and returns it with its contents: an empty register; or
    /// the register of the least urgent interrupt that is pending, or will be pending when it ends, if that
    /// interrupt is less urgent than `waiting`; or, if no interrupt can be acknowledged, the register of the
    /// most urgent active interrupt, which ends first.
    pub fn slot_for(&self, waiting: ListRegister) -> Option<(usize, ListRegister)> {
        if self.empty != 0 {
            return Some((self.empty.trailing_zeros() as usize, ListRegister::EMPTY));
        }
        let urgency = |(_, one): &(usize, ListRegister)| (one.priority(), one.intid());
        let listed = self.registers.iter().copied();
        let least = listed.clone().filter(|(_, one)| one.is_pending());
        let least = least.max_by_key(urgency);
        let less = least.filter(|(_, one)| one.priority() > waiting.priority());
        let all_active = listed.clone().all(|(_, one)| one.is_active());
        less.or_else(|| listed.min_by_key(urgency).filter(|_| all_active))
    }
}
