// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of a CPU that idles by governor, as pointers that others can change, and whether it polls
//! because it is made to.

use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

/// The functions of a CPU that idles by governor and can be made to poll by a pointer: steps of
/// the type that it runs at the moment.
pub struct Steps {
    /// The step that it runs.
    pub now: AtomicPtr<()>,
    /// The governor's choice.
    pub chosen: AtomicPtr<()>,
    /// Polls.
    pub forced: AtomicPtr<()>,
    /// It polls because it is made to, in whichever way.
    pub polls: AtomicBool,
}

impl Steps {
    /// Returns no steps.
    pub const fn new() -> Self {
        const fn none() -> AtomicPtr<()> {
            AtomicPtr::new(core::ptr::null_mut())
        }
        Self {
            now: none(),
            chosen: none(),
            forced: none(),
            polls: AtomicBool::new(false),
        }
    }

    /// Whether the CPU has any: it has begun to idle by governor.
    pub fn are_set(&self) -> bool {
        !self.now.load(Acquire).is_null()
    }

    /// Takes them back, between two blocks.
    pub fn clear(&self) {
        self.now.store(core::ptr::null_mut(), Release);
    }

    /// Makes the CPU poll, or not; it learns of it when it idles next, or at
    /// once if it polls.
    pub fn force(&self, on: bool) {
        let step = if on { &self.forced } else { &self.chosen };
        self.now.store(step.load(Acquire), Release);
    }
}
