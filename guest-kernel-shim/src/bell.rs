// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds state that an alarm and its interrupt handler share.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The record of one CPU's alarm; only the CPU itself uses it.
pub struct Bell {
    /// Number of times that the alarm has fired since it was set.
    pub rings: AtomicU32,
    /// The time of the alarm's first interrupt, in ticks.
    pub first: AtomicU64,
}

impl Bell {
    /// Returns the record of an alarm that has never fired.
    pub(crate) const fn new() -> Self {
        Self {
            rings: AtomicU32::new(0),
            first: AtomicU64::new(0),
        }
    }
}
