// SPDX-License-Identifier: MIT OR Apache-2.0
//! A state per INTID that any CPU sets and clears by register writes, while one CPU, the holder, keeps
//! it in list registers or in the machine: two bitmaps that change in one step.
//!
//! If each bitmap were a word of its own, a clear followed by a set could be served in the wrong
//! order: the holder could take the set first, and the clear at its next read.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire};

/// INTIDs that are set but not yet taken by the holder (31:0), and INTIDs that the holder has to clear
/// (63:32).
#[derive(Debug)]
pub struct Requests(AtomicU64);

impl Requests {
    /// Creates an empty set of requests.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Serves a write of GICR_ISxxx: the last write wins.
    pub fn set(&self, bits: u32) {
        self.change_both(|set, clear| (set | bits, clear & !bits));
    }

    /// Serves a write of GICR_ICxxx.
    pub fn clear(&self, bits: u32) {
        self.change_both(|set, clear| (set & !bits, clear | bits));
    }

    /// Takes `bits` back from the holder, except the bits that the holder has to clear.
    pub fn give_back(&self, bits: u32) {
        self.change_both(|set, clear| (set | bits & !clear, clear));
    }

    /// Takes over the set bits in `of`, for the holder.
    pub fn take_set(&self, of: u32) -> u32 {
        // In the common case, there is no request. A CPU that makes one sends EVALUATE afterwards.
        if self.bits_to_set() & of == 0 {
            return 0;
        }
        self.change_both(|set, clear| (set & !of, clear)).0 & of
    }

    /// Takes over the bits that the holder has to clear.
    pub fn take_clear(&self) -> u32 {
        if self.bits_to_clear() == 0 {
            return 0;
        }
        self.change_both(|set, _| (set, 0)).1
    }

    /// Returns the bits that are set but not yet taken by the holder.
    pub fn bits_to_set(&self) -> u32 {
        split_halves(self.0.load(Acquire)).0
    }

    /// Returns the bits that the holder has to clear.
    pub fn bits_to_clear(&self) -> u32 {
        split_halves(self.0.load(Acquire)).1
    }

    /// Changes the two bitmaps. Returns their old values.
    fn change_both(&self, to: impl Fn(u32, u32) -> (u32, u32)) -> (u32, u32) {
        let changed = |now| {
            let (set, clear) = split_halves(now);
            let (set, clear) = to(set, clear);
            Some(u64::from(clear) << 32 | u64::from(set))
        };
        // `changed` always returns a new value. `Ok` and `Err` both hold the old value.
        let (Ok(was) | Err(was)) = self.0.fetch_update(AcqRel, Acquire, changed);
        split_halves(was)
    }
}

const fn split_halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
