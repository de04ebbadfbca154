// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the idle steps of a governed CPU, as pointers that other CPUs can change, and whether the CPU
//! is forced to poll.

use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

/// The idle steps of a governed CPU, which a change of a pointer can force to poll. The steps are
/// functions of the type that the CPU's current body uses.
pub struct Steps {
    /// The current step.
    pub now: AtomicPtr<()>,
    /// The step that follows the governor's choice.
    pub chosen: AtomicPtr<()>,
    /// The step that polls.
    pub forced: AtomicPtr<()>,
    /// Whether the CPU is forced to poll, in any way.
    pub polls: AtomicBool,
}

impl Steps {
    /// Returns a value without steps.
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

    /// Whether the CPU has steps, because it has begun to idle as a governor chooses.
    pub fn are_set(&self) -> bool {
        !self.now.load(Acquire).is_null()
    }

    /// Removes the steps, between two blocks.
    pub fn clear(&self) {
        self.now.store(core::ptr::null_mut(), Release);
    }

    /// Makes the CPU start or stop polling; it notices when it next idles, or at once if it is polling.
    pub fn force_poll(&self, on: bool) {
        let step = if on { &self.forced } else { &self.chosen };
        self.now.store(step.load(Acquire), Release);
    }
}
