// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that an alarm and its handler share.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The bell of one CPU; only the CPU itself uses it.
pub struct Bell {
    /// Number of rings since the alarm was set.
    pub rings: AtomicU32,
    /// The time of the first interrupt, ticks.
    pub first: AtomicU64,
}

impl Bell {
    /// Returns a bell that never rang.
    pub(crate) const fn new() -> Self {
        Self {
            rings: AtomicU32::new(0),
            first: AtomicU64::new(0),
        }
    }
}
