// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops generic watchdogs that firmware left running: they would reset the machine in the middle
//! of a run.
//!
//! The watchdogs are stopped with the MMU off, when every data access is to Device memory (DDI 0487K.a, B2.12.2),
//! so nothing has to be mapped. If firmware describes a frame that the secure side keeps, the access would cause
//! an exception or stop the machine. So each access is announced, and the boot argument `rouse.keep-watchdogs`
//! skips it.

use platform::Platform;

use crate::say;

/// Stops the running watchdogs of `platform`, unless `keep` is set. The MMU must be off.
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
            // SAFETY: the description names the frame for this side, no device that is used has
            // this frame, and the MMU is off.
            let state = unsafe { watchdog::stop(control) };
            say!("watchdog {control:#x}: {state}");
        }
    }
    let ignored = platform.watchdogs.ignored;
    if ignored > 0 {
        say!("{ignored} further watchdogs are described and not looked at");
    }
}
