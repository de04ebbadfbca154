// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records interrupts that a CPU took and that only a check expects.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Interrupts that only a check expects, in the order in which a CPU took them.
pub struct Journal {
    taken: AtomicU32,
    intids: [AtomicU32; 64],
}

impl Journal {
    /// Returns an empty journal.
    pub(crate) const fn new() -> Self {
        Self {
            taken: AtomicU32::new(0),
            intids: [const { AtomicU32::new(0) }; 64],
        }
    }

    /// Forgets the recorded interrupts.
    pub fn clear(&self) {
        self.taken.store(0, Release);
    }

    /// Returns the number of recorded interrupts.
    pub fn count(&self) -> usize {
        self.taken.load(Acquire) as usize
    }

    /// Returns the latest interrupt.
    pub fn last(&self) -> Option<u32> {
        self.iter().last()
    }

    /// Returns all recorded interrupts, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let known = self.intids.iter().take(self.count());
        known.map(|intid| intid.load(Relaxed))
    }

    /// Returns which INTIDs below 32 are in the journal, one bit each.
    pub fn intid_bits(&self) -> u32 {
        self.iter().fold(0, |bits, intid| bits | 1 << (intid & 31))
    }

    /// Records an interrupt; only the CPU itself calls this.
    pub fn record_interrupt(&self, intid: u32) {
        let count = self.taken.load(Relaxed);
        if let Some(place) = self.intids.get(count as usize) {
            place.store(intid, Relaxed);
            self.taken.store(count + 1, Release);
        }
    }
}
