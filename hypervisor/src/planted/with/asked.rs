// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fault that is asked for.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use plan::{Fault, MachineFault, Word};

/// The fault's place in the list + 1; 0 if none. It is not under a lock, which would need exclusive accesses, because
/// it is written with the MMU off.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Notes which fault is asked for.
pub fn ask(fault: Option<Fault>) {
    let place = fault.and_then(|fault| Fault::ALL.iter().position(|known| *known == fault));
    ASKED.store(place.map_or(0, |place| 1 + place as u32), Relaxed);
}

/// The fault that is asked for.
pub fn asked() -> Option<Fault> {
    let place = ASKED.load(Relaxed).checked_sub(1)?;
    Fault::ALL.get(place as usize).copied()
}

/// Whether it is `fault`.
pub fn is(fault: MachineFault) -> bool {
    asked() == Some(Fault::Machine(fault))
}
