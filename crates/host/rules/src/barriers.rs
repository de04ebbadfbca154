// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the DSBs of all CPUs. The counts show which operations have been completed by a DSB, and which DSBs were
//! executed before a CPU's context synchronization event.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Number of CPUs whose DSBs are counted. All CPU numbers of an emulator are lower.
const CPUS: usize = 512;

/// How many DSBs each CPU has executed. Only DSBs that apply to both loads and stores count.
#[derive(Debug)]
pub struct Barriers {
    executed: Box<[AtomicU64]>,
    /// One more than the highest number of a CPU that has executed a DSB.
    cpus: AtomicUsize,
}

/// When an operation began: the CPU's number, and its count of DSBs at that time. The next DSB on this CPU completes
/// the operation.
#[derive(Debug, Default)]
pub struct Begun(AtomicU64);

/// Each CPU's count of DSBs at the last context synchronization event of one CPU.
#[derive(Debug)]
pub struct Seen(Vec<u64>);

const SHIFT: u32 = 48;

impl Barriers {
    pub fn new() -> Self {
        Self {
            executed: (0..CPUS).map(|_| AtomicU64::default()).collect(),
            cpus: AtomicUsize::new(0),
        }
    }

    /// Counts a DSB that `cpu` has executed.
    pub fn count_dsb(&self, cpu: u16) {
        if let Some(executed) = self.executed.get(usize::from(cpu)) {
            executed.fetch_add(1, Relaxed);
            self.cpus.fetch_max(usize::from(cpu) + 1, Relaxed);
        }
    }

    fn dsb_count(&self, cpu: usize) -> u64 {
        let executed = self.executed.get(cpu);
        executed.map_or(0, |executed| executed.load(Relaxed))
    }

    /// Notes that `cpu` begins an operation that a DSB of the same CPU completes.
    pub fn begin_operation(&self, cpu: u16, begun: &Begun) {
        let count = self.dsb_count(cpu.into()) & ((1 << SHIFT) - 1);
        begun.0.store(u64::from(cpu) << SHIFT | count, Relaxed);
    }

    /// Whether a DSB of the same CPU has completed the operation `begun`.
    pub fn have_completed(&self, begun: &Begun) -> bool {
        let (cpu, count) = begun.cpu_and_count();
        self.dsb_count(cpu) > count
    }

    /// Returns the current counts of DSBs. A CPU calls this at a context synchronization event.
    pub fn dsb_counts(&self) -> Seen {
        let cpus = self.cpus.load(Relaxed);
        Seen((0..cpus).map(|cpu| self.dsb_count(cpu)).collect())
    }
}

impl Begun {
    pub fn copy_from(&self, other: &Self) {
        self.0.store(other.0.load(Relaxed), Relaxed);
    }

    fn cpu_and_count(&self) -> (usize, u64) {
        let begun = self.0.load(Relaxed);
        ((begun >> SHIFT) as usize, begun & ((1 << SHIFT) - 1))
    }
}

impl Seen {
    /// Whether one of the DSBs in these counts has completed `begun`.
    pub fn has_completed(&self, begun: &Begun) -> bool {
        let (cpu, count) = begun.cpu_and_count();
        self.0.get(cpu).is_some_and(|executed| *executed > count)
    }
}
