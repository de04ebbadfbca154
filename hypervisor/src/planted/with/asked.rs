// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the fault that the boot arguments ask for.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use plan::{Fault, MachineFault, Word};

/// The fault's index in the list + 1; 0 if there is none. No lock protects the variable, because it is written with the
/// MMU off and a lock would need exclusive accesses.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Notes which fault is asked for.
pub fn note_fault(fault: Option<Fault>) {
    let place = fault.and_then(|fault| Fault::ALL.iter().position(|known| *known == fault));
    ASKED.store(place.map_or(0, |place| 1 + place as u32), Relaxed);
}

/// Returns the fault that is asked for.
pub fn asked_fault() -> Option<Fault> {
    let place = ASKED.load(Relaxed).checked_sub(1)?;
    Fault::ALL.get(place as usize).copied()
}

/// Whether `fault` is the fault that is asked for.
pub fn is_asked(fault: MachineFault) -> bool {
    asked_fault() == Some(Fault::Machine(fault))
}
