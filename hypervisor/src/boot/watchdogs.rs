// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generic watchdogs that firmware left running are stopped: one would reset the machine in the
//! middle of a run.
//!
//! This is done with the MMU off, where every access is one to Device memory (DDI 0487K.a,
//! B2.12.2), so nothing has to be mapped. Firmware that describes a frame which the secure side
//! keeps would have this CPU trapped, or the machine stopped: so it is announced, and boot argument
//! `rouse.keep-watchdogs` leaves it out.

use platform::Platform;

use crate::say;

/// Looks at the watchdogs of `platform`, and stops those that run, unless they are to be kept.
/// The MMU is off.
pub fn stop(platform: &Platform<'_>, keep: bool) {
    for watchdog in &platform.watchdogs.found {
        let control = watchdog.control;
        if keep {
            say!("watchdog {control:#x}: left alone, as rouse.keep-watchdogs asks");
        } else if let Some(why) = platform.why_not(watchdog) {
            say!("watchdog {control:#x}: left alone: {why}");
        } else {
            say!(
                "watchdog {control:#x}: read next; if this is the last line, firmware keeps it: rouse.keep-watchdogs"
            );
            // SAFETY: the description names the frame for this side, it is no other device's
            // that is used, and the MMU is off.
            let state = unsafe { watchdog::stop(control) };
            say!("watchdog {control:#x}: {state}");
        }
    }
    let ignored = platform.watchdogs.ignored;
    if ignored > 0 {
        say!("{ignored} further watchdogs are described and not looked at");
    }
}
