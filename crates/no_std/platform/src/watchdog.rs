// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the generic watchdogs that firmware describes, and decides which of them may be touched. A
//! watchdog resets the machine unless it is refreshed.
//!
//! Arm Base System Architecture, DEN0094, chapter on the Generic Watchdog: each has a refresh frame
//! and a control frame of at least 4 KiB. If firmware leaves a watchdog running, it will end the
//! run.

use arrayvec::ArrayVec;

use crate::{Platform, Region};

/// Maximum number of watchdogs recorded; further ones are only counted.
pub const MAX_WATCHDOGS: usize = 8;

/// Bytes of a frame.
const FRAME: u64 = 0x1000;
/// The end of the physical addresses in use.
const END: u64 = 1 << 48;

/// One watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Physical address of the watchdog's control frame.
    pub control: u64,
    /// Whether the description withholds the watchdog from us: it belongs to the secure side, or is disabled.
    pub kept: bool,
}

/// The watchdogs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watchdogs {
    /// The recorded watchdogs.
    pub found: ArrayVec<Watchdog, MAX_WATCHDOGS>,
    /// Number of further watchdogs in the description.
    pub ignored: usize,
}

impl Watchdogs {
    /// Adds a watchdog, or counts it if there is no room.
    pub fn add(&mut self, watchdog: Watchdog) {
        if self.found.try_push(watchdog).is_err() {
            self.ignored += 1;
        }
    }
}

impl Platform<'_> {
    /// Returns the reason why `watchdog` must not be touched, if there is one. A wrong description here
    /// justifies neither refusing the machine nor writing to another device.
    #[must_use]
    pub fn why_not(&self, watchdog: &Watchdog) -> Option<&'static str> {
        let Watchdog { control, kept } = *watchdog;
        if kept {
            return Some("the description keeps it for the secure side");
        }
        if control == 0 || !control.is_multiple_of(FRAME) || control >= END {
            return Some("its address is not that of a frame");
        }
        let frame = Region {
            base: control,
            size: FRAME,
        };
        let (memory, gic) = (&self.memory, &self.gic);
        if memory.iter().any(|bank| bank.overlaps(&frame)) {
            return Some("its address is in RAM");
        }
        let gics = gic.redistributors.iter().chain([&gic.distributor]);
        if gics.into_iter().any(|one| one.overlaps(&frame)) {
            return Some("its address is in the interrupt controller");
        }
        if self.uart.is_some_and(|uart| frame.contains(uart.base)) {
            return Some("its address is the console's");
        }
        None
    }
}
