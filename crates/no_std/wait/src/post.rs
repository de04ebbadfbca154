// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that is posted for parked CPUs.
//!
//! A CPU that is about to park looks once more. So it can find work before the wake-up for
//! that work has arrived. If the wake-up came after the CPU has begun, the CPU would take it
//! for one that belongs to the work. So the poster holds the lock of the place until it has
//! sent the wake-up. A CPU that finds work has its wake-up already, however long the poster
//! is delayed, and clears it when it begins.

use core::ops::DerefMut;

use crate::request::RESCHED;
use crate::target::Target;

/// Changes what `place` guards, and wakes the CPUs that the change is for before any of
/// them can see it: `place` is released last.
pub fn post<G: DerefMut>(mut place: G, change: impl FnOnce(&mut G::Target), wake: impl FnOnce()) {
    change(&mut place);
    wake();
    drop(place);
}

/// Clears the wake-up of `cpu` for the work that it is about to begin: during the work it
/// would mean nothing. If the wake-up had a second reason, the next look finds that.
pub fn begin(cpu: &impl Target) {
    cpu.request().take(RESCHED);
    cpu.clear_interrupted();
}
