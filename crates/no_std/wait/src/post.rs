// SPDX-License-Identifier: MIT OR Apache-2.0
//! Posts work for parked CPUs.
//!
//! A CPU that is about to park looks for work once more, so it can find work before the wake-up for
//! that work has arrived. If the wake-up came after the CPU had begun the work, the CPU would
//! mistake it for a wake-up that belongs to the work. So the poster holds the lock of the posted data
//! until it has sent the wake-up. When a CPU finds work, it already has its wake-up, however long
//! the poster is delayed, and clears the wake-up before it begins.

use core::ops::DerefMut;

use crate::request::RESCHED;
use crate::target::Target;

/// Changes the data that the lock `place` guards, and wakes the CPUs concerned before any of them can
/// see the change: `place` is released last.
pub fn post<G: DerefMut>(mut place: G, change: impl FnOnce(&mut G::Target), wake: impl FnOnce()) {
    change(&mut place);
    wake();
    drop(place);
}

/// Clears the wake-up of `cpu` for the work that it is about to begin: during the work, the wake-up
/// would be meaningless. If the wake-up had a second reason, the CPU finds that reason the next time it looks.
pub fn clear_wake_up(cpu: &impl Target) {
    cpu.request().take(RESCHED);
    cpu.clear_interrupted();
}
