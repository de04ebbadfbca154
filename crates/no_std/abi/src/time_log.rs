// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log of a CPU's activities with their times, in the guest's memory.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Traced;

/// The notes of one CPU at one exception level, with their times. Only that CPU writes notes; any
/// CPU may read them.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct TimeLog {
    count: AtomicU64,
    entries: [[AtomicU64; 2]; TimeLog::KEPT as usize],
}

/// An entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeNote {
    /// Virtual count, ticks.
    pub time: u64,
    /// The activity that begins at that time: a number whose meaning differs between guest and EL2.
    pub word: u64,
}

impl Default for TimeLog {
    fn default() -> Self {
        Self::new()
    }
}

impl TimeLog {
    /// Number of notes that the log keeps.
    pub const KEPT: u64 = 1024;

    /// Creates an empty log. Memory that is all zero is an empty log, too.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            entries: [const { [const { AtomicU64::new(0) }; 2] }; Self::KEPT as usize],
        }
    }

    /// Adds a note of `word` at `time`.
    #[inline(always)]
    pub fn note(&self, time: u64, word: u64) {
        let count = self.count.load(Relaxed);
        let [time_of, word_of] = &self.entries[(count % Self::KEPT) as usize];
        // strict sgi-after-stores: no SGI announces a note, because a reader relies on the count.
        time_of.store(time, Relaxed);
        // strict sgi-after-stores: no SGI announces a note
        word_of.store(word, Relaxed);
        // strict sgi-after-stores: no SGI announces a note
        self.count.store(count.wrapping_add(1), Release);
    }

    /// Forgets all notes. No CPU may write a note during the call.
    pub fn clear(&self) {
        self.count.store(0, Release);
    }

    /// Returns the number of complete notes. All stores that the CPU made before these notes are visible.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    /// Returns note `number`, from 0, or `None` if it does not exist yet or was overwritten.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<TimeNote> {
        (number < self.count()).then_some(())?;
        let [time, word] = &self.entries[(number % Self::KEPT) as usize];
        // Time and word are acquire loads, so that the count is read after them.
        let note = TimeNote {
            time: time.load(Acquire),
            word: word.load(Acquire),
        };
        // If a note is being written, its slot is incomplete.
        (self.count() - number < Self::KEPT).then_some(note)
    }
}

/// Returns the word that describes an event at EL2.
#[must_use]
pub const fn event_word(what: Traced, data: u64) -> u64 {
    data << 8 | what as u64
}

/// Returns the kind of an event, a [`Traced`] as a number, and its data.
#[must_use]
pub const fn event_of(word: u64) -> (u64, u64) {
    (word & 0xff, word >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_others_are_not_there() {
        let log = TimeLog::new();
        assert_eq!((log.count(), log.get(0)), (0, None));
        let count = TimeLog::KEPT + 10;
        for n in 0..count {
            log.note(n * 3, event_word(Traced::Halt, n));
        }
        let kept: Vec<u64> = (0..count + 2).filter(|&n| log.get(n).is_some()).collect();
        // One slot is always reserved for the next note.
        assert_eq!(kept, (11..count).collect::<Vec<u64>>());
        let note = log.get(20).unwrap();
        assert_eq!(
            (note.time, event_of(note.word)),
            (60, (Traced::Halt as u64, 20))
        );
    }
}
