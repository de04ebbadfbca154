// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of a CPU that idles by governor, as pointers that others can change, and whether it is
//! forced to poll.

use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

/// The functions of a CPU that idles by governor and can be made to poll through a pointer: steps
/// of its current type.
pub struct Steps {
    /// The current step.
    pub now: AtomicPtr<()>,
    /// The step that follows the governor's choice.
    pub chosen: AtomicPtr<()>,
    /// The step that polls.
    pub forced: AtomicPtr<()>,
    /// Whether it is forced to poll, in any way.
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

    /// Whether the CPU has steps, because it has begun to idle by governor.
    pub fn are_set(&self) -> bool {
        !self.now.load(Acquire).is_null()
    }

    /// Removes the steps, between two blocks.
    pub fn clear(&self) {
        self.now.store(core::ptr::null_mut(), Release);
    }

    /// Makes the CPU poll, or not; the CPU notices when it next idles, or at once if it polls.
    pub fn force(&self, on: bool) {
        let step = if on { &self.forced } else { &self.chosen };
        self.now.store(step.load(Acquire), Release);
    }
}
