// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that is posted where parked CPUs look for it.
//!
//! A CPU that is about to park looks once more, so it can find work before it is woken
//! for it. A wake-up that comes after it has begun would be taken for one of the work
//! itself, which then had one too many. So a CPU that finds work has its wake-up already,
//! however long the poster is held up between the two, and uses it up when it begins.

use core::ops::DerefMut;

use crate::request::RESCHED;
use crate::target::Target;

/// Changes what `place` guards, and wakes those that the change is for before any of them
/// can see it.
pub fn post<G: DerefMut>(mut place: G, change: impl FnOnce(&mut G::Target), wake: impl FnOnce()) {
    change(&mut place);
    wake();
    drop(place);
}

/// Uses up what woke `cpu` for the work that it is about to begin: in the work it would be
/// of no meaning. If it stands for more than that, the next look finds it.
pub fn begin(cpu: &impl Target) {
    cpu.request().take(RESCHED);
    cpu.clear_interrupted();
}
