// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops a generic watchdog that firmware left running.
//!
//! See the Arm Base System Architecture, DEN0094, chapter on the Generic Watchdog. WCS is at offset
//! 0 of the control frame, 32 bits wide. Bit 0 enables the watchdog. Bits 1 and 2 are set while its
//! first signal (an interrupt) and its second signal (usually a reset) are asserted. A write to WCS
//! is a refresh, and clears these two bits.

#![cfg_attr(not(test), no_std)]

use core::fmt;

/// Offset of WCS in the control frame.
const WCS: u64 = 0;
/// WCS: the watchdog is enabled and counts.
const ENABLED: u32 = 1 << 0;
/// WCS: the watchdog's signals are asserted.
const SIGNALS: u32 = 3 << 1;

/// The state in which a watchdog was found and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The watchdog was off; its WCS.
    Off(u32),
    /// The watchdog was running (the first WCS), and is now off (the second WCS).
    Stopped(u32, u32),
    /// The watchdog was running (the first WCS), and keeps running (the second WCS).
    Stays(u32, u32),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off(wcs) => write!(f, "off (WCS {wcs:#x})"),
            Self::Stopped(was, is) => {
                write!(
                    f,
                    "firmware left it running (WCS {was:#x}); stopped ({is:#x})"
                )
            }
            Self::Stays(was, is) => write!(
                f,
                "firmware left it running (WCS {was:#x}), and it does not stop ({is:#x}): it may reset the machine"
            ),
        }
    }
}

/// Stops the watchdog whose control frame is at `control`, if it runs. Also writes WCS if the
/// watchdog is off with a signal asserted, because the signal is an interrupt that stays pending.
///
/// # Safety
/// `control` must be the address of a control frame that this side may use, mapped as Device
/// memory, and nothing else may use the frame.
#[must_use]
pub unsafe fn stop(control: u64) -> State {
    let register = core::ptr::with_exposed_provenance_mut::<u32>((control + WCS) as usize);
    // SAFETY: the caller promises a mapped control frame; a frame is a page, so WCS is aligned.
    let was = unsafe { register.read_volatile() };
    if was & (ENABLED | SIGNALS) == 0 {
        return State::Off(was);
    }
    // SAFETY: the caller promises a mapped control frame; a frame is a page, so WCS is aligned.
    let is = unsafe {
        register.write_volatile(0);
        register.read_volatile()
    };
    match (was & ENABLED, is & ENABLED) {
        (_, ENABLED) => State::Stays(was, is),
        (ENABLED, _) => State::Stopped(was, is),
        _ => State::Off(was),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `stop` on memory that stands in for a control frame with WCS `wcs`. Also returns the final WCS.
    fn stopped(wcs: u32) -> (State, u32) {
        let mut frame = [wcs, 7];
        // SAFETY: this is the test's own memory.
        let state = unsafe { stop(frame.as_mut_ptr().expose_provenance() as u64) };
        assert_eq!(frame[1], 7);
        (state, frame[0])
    }

    #[test]
    fn one_that_runs_is_stopped() {
        assert_eq!(stopped(1), (State::Stopped(1, 0), 0));
        assert_eq!(stopped(7), (State::Stopped(7, 0), 0));
        let said = "firmware left it running (WCS 0x3); stopped (0x0)";
        assert_eq!(stopped(3).0.to_string(), said);
    }

    #[test]
    fn one_that_is_off_stays_as_it_is_but_for_its_signals() {
        assert_eq!(stopped(0), (State::Off(0), 0));
        // Reserved bits are not a reason to write.
        assert_eq!(stopped(0x100), (State::Off(0x100), 0x100));
        assert_eq!(stopped(2), (State::Off(2), 0));
        assert_eq!(stopped(4).0.to_string(), "off (WCS 0x4)");
    }
}
