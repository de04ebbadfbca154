// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that the CPUs of a machine share: memory, the effects of CPUs on each other, and findings.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::finding::{Finding, Place};
use crate::rules::caches::Coherence;
use crate::rules::code::Written;
use crate::rules::sgi::Sends;
use crate::rules::tables::InUse;

/// State that the CPUs share.
pub struct Shared {
    /// Known state of the lines of memory.
    pub(crate) coherence: Coherence,
    /// Written lines that still lack some of the maintenance that a fetch of their instructions requires.
    pub(crate) written: Written,
    /// SGIs that were sent before earlier stores of the sender were visible.
    pub(crate) sends: Sends,
    /// Translation tables in use.
    pub(crate) tables: InUse,
    /// Whether any CPU has executed SEV.
    pub(crate) events: AtomicBool,
    /// Number of broadcast TLBIs so far.
    invalidated: AtomicU64,
    known: Mutex<HashSet<(&'static str, Place)>>,
    machine: Box<dyn Machine>,
}

/// Access to the machine, and the receiver of findings.
pub trait Machine: Send + Sync {
    /// Reads the word at a physical address.
    fn read(&self, physical: u64) -> Option<u64>;

    /// Translates a virtual address to a physical address, on the CPU that the current thread runs.
    fn locate(&self, address: u64) -> Option<u64>;

    /// Receives a finding. There is at most one finding for each pair of a rule and an instruction.
    fn find(&self, finding: &Finding);
}

impl Shared {
    /// Creates the state before anything has happened.
    pub fn new(machine: impl Machine + 'static) -> Self {
        Self {
            coherence: Coherence::new(),
            written: Written::new(),
            sends: Sends::default(),
            tables: InUse::default(),
            events: AtomicBool::new(false),
            invalidated: AtomicU64::new(0),
            known: Mutex::default(),
            machine: Box::new(machine),
        }
    }

    pub(crate) fn read(&self, physical: u64) -> Option<u64> {
        self.machine.read(physical)
    }

    pub(crate) fn locate(&self, address: u64) -> Option<u64> {
        self.machine.locate(address)
    }

    /// Counts a broadcast TLBI.
    pub(crate) fn count_tlbi(&self) {
        self.invalidated.fetch_add(1, Relaxed);
    }

    /// Returns the number of broadcast TLBIs so far.
    pub(crate) fn tlbi_count(&self) -> u64 {
        self.invalidated.load(Relaxed)
    }

    /// Reports that `rule` was broken, unless this instruction is already known to break it.
    pub(crate) fn report(
        &self,
        rule: &'static str,
        cpu: u16,
        place: Place,
        other: Option<Place>,
        what: String,
    ) {
        let mut known = lock(&self.known);
        if known.insert((rule, place)) {
            self.machine.find(&Finding {
                rule: rule.into(),
                cpu,
                place,
                other,
                what,
            });
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Locks `mutex`. Ignores poisoning, because the state is valid even after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
