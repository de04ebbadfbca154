// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failing as the boot arguments ask by `rouse.fault=NAME`: a way to see
//! what a failure looks like, and that it is noticed. The guest has no say in it.
//!
//! Nothing of this is looked at on a measured path: the machine's own faults are
//! made while it starts, those of EL2 when the guest asks for a watch
//! ([`abi::Call::Watch`]), which every guest does that wants one of them.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use plan::{Fault, Word};

/// The fault that is asked for, by its place in the list + 1; 0 is none.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Notes which fault is asked for.
pub fn ask(fault: Option<Fault>) {
    ASKED.store(fault.map_or(0, |fault| 1 + fault as u32), Relaxed);
}

/// The fault that is asked for.
pub fn asked() -> Option<Fault> {
    let place = ASKED.load(Relaxed).checked_sub(1)?;
    Fault::ALL.get(place as usize).copied()
}

/// Whether `fault` is asked for.
pub fn is(fault: Fault) -> bool {
    ASKED.load(Relaxed) == 1 + fault as u32
}

/// The counter as EL2 reads it while it starts.
pub fn counter() -> u64 {
    if is(Fault::CounterStands) {
        0
    } else {
        CNTPCT_EL0.get()
    }
}
