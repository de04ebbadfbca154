// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts a vCPU's exits and events.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use abi::Counter;

/// Number of counters stored here; `Vcpu::count` derives the last counter from other counters.
const COUNTED: usize = Counter::SlowHalt as usize;
const _: () = assert!(COUNTED + 1 == Counter::COUNT);

/// The counters of one vCPU. Only the vCPU's own CPU counts, so that counting is a load, an add and
/// a store; any CPU may read them.
pub struct Counters([AtomicU64; COUNTED]);

impl Counters {
    /// Creates counters that are all zero.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; COUNTED])
    }

    /// Counts one more event of `counter`.
    #[inline(always)]
    pub fn add(&self, counter: Counter) {
        let counter = &self.0[counter as usize];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    /// Takes back one event of `counter` that should not have been counted.
    pub fn uncount(&self, counter: Counter) {
        let counter = &self.0[counter as usize];
        counter.store(counter.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Returns the count of `counter`.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Relaxed)
    }
}
