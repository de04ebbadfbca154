// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets the guest show the activities of its vCPUs to the hypervisor and in dumps.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Shows whether a vCPU makes progress.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct WatchPoint {
    /// Number of wake-ups that the vCPU has received.
    pub progress: AtomicU64,
    /// Number of wake-ups that were sent to the vCPU but not received.
    pub waiting: AtomicU64,
    /// Guest physical address of the vCPU's request word, which has 32 bits.
    pub request: AtomicU64,
    /// Guest physical address of the vCPU's [`OperationLog`]; 0 if there is none.
    pub log: AtomicU64,
}

/// The last operations of a vCPU, named by the guest, for dumps. Only the vCPU writes to the
/// log.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct OperationLog {
    count: AtomicU64,
    entries: [[AtomicU64; 5]; OperationLog::KEPT],
}

/// An operation in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Virtual count, in ticks, when the operation began.
    pub time: u64,
    /// Name of the operation, padded with zeros.
    pub name: [u8; 16],
    /// Number of the operation among the vCPU's operations.
    pub step: u64,
    /// Argument of the operation.
    pub data: u64,
}

impl Default for OperationLog {
    fn default() -> Self {
        Self::new()
    }
}

impl OperationLog {
    /// Number of operations that the log keeps.
    pub const KEPT: usize = 16;

    /// Creates an empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            entries: [const { [const { AtomicU64::new(0) }; 5] }; Self::KEPT],
        }
    }

    /// Records an operation, with the first 16 bytes of `name`.
    pub fn note(&self, time: u64, name: &str, step: u64, data: u64) {
        let mut bytes = [0; 16];
        let kept = name.len().min(bytes.len());
        bytes[..kept].copy_from_slice(&name.as_bytes()[..kept]);
        let name = u128::from_le_bytes(bytes);
        let count = self.count.load(Relaxed);
        let words = [time, name as u64, (name >> 64) as u64, step, data];
        let entry = &self.entries[count as usize % Self::KEPT];
        for (place, word) in entry.iter().zip(words) {
            place.store(word, Relaxed);
        }
        self.count.store(count + 1, Release);
    }

    /// Iterates over the recorded operations, the oldest first. The operations are consistent only
    /// while the vCPU records none.
    pub fn iter(&self) -> impl Iterator<Item = Noted> + '_ {
        let count = self.count.load(Acquire);
        let kept = count.min(Self::KEPT as u64);
        (count - kept..count).map(|number| {
            let entry = &self.entries[number as usize % Self::KEPT];
            let [time, low, high, step, data] = [0, 1, 2, 3, 4].map(|n| entry[n].load(Relaxed));
            let name = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
            Noted {
                time,
                name,
                step,
                data,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_newest_in_order() {
        let log = OperationLog::new();
        assert_eq!(log.iter().count(), 0);
        for step in 0..20 {
            log.note(step * 10, "a-name-of-more-than-sixteen", step, !step);
        }
        let steps: Vec<u64> = log.iter().map(|noted| noted.step).collect();
        assert_eq!(steps, (4..20).collect::<Vec<u64>>());
        let last = log.iter().last().unwrap();
        assert_eq!((last.time, last.data), (190, !19));
        assert_eq!(&last.name, b"a-name-of-more-t");
    }
}
