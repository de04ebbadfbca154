// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes the signals that ask this program to end, such as Ctrl-C. Code that must stop early, or save something, checks
//! here for such a signal.
//!
//! Until [`catch`], a signal ends the program as usual. From then on, the first
//! signal requests a stop, which keeps the results so far, and the second one ends the program at
//! once. In either case, the exit status is 128 plus the signal's number.

use std::fmt;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// A signal within this time after the first signal does not count as a second signal. Programs such as `timeout` send
/// one signal to the program and another to the program's process group.
const SAME: Duration = Duration::from_secs(1);

/// The number of the last signal, or 0 before the first signal. Unset until signals are caught.
static CAUGHT: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// A signal that asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// Returns the exit status of a program that the signal has ended.
    pub fn exit_status(self) -> u8 {
        u8::try_from(128 + self.0).unwrap_or(u8::MAX)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name_of(self.0))
    }
}

/// Returns the name of a signal.
pub fn name_of(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Notes signals from now on, instead of letting them end the program.
pub fn catch() -> Result<()> {
    let mut first = false;
    let caught = CAUGHT.get_or_init(|| {
        first = true;
        Arc::default()
    });
    if !first {
        return Ok(());
    }
    let failed = "signals can't be caught";
    // The handler itself stores the signal. Otherwise, an emulator that the same Ctrl-C has ended could be found dead
    // before the reason is known.
    for signal in SIGNALS {
        flag::register_usize(signal, caught.clone(), signal as usize).context(failed)?;
    }
    let mut signals = Signals::new(SIGNALS).context(failed)?;
    thread::spawn(move || {
        let mut since = None;
        for signal in signals.forever() {
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() >= SAME {
                process::exit(Signal(signal).exit_status().into());
            }
        }
    });
    Ok(())
}

/// Returns the signal that asked the program to stop.
pub fn signal() -> Option<Signal> {
    match CAUGHT.get()?.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(Signal(i32::try_from(signal).unwrap_or(0))),
    }
}

/// Whether the program should end.
pub fn requested() -> bool {
    signal().is_some()
}

/// Returns the outcome of a step, or an error if the program should end. A signal also interrupts
/// the programs that the step runs, so their errors are not the cause.
pub fn or<T>(outcome: Result<T>) -> Result<T> {
    if let Some(signal) = signal() {
        bail!("interrupted by {signal}");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_is_the_shells() {
        let statuses = SIGNALS.map(|signal| Signal(signal).exit_status());
        assert_eq!(statuses, [129, 130, 143]);
        assert_eq!(Signal(SIGTERM).to_string(), "SIGTERM");
    }
}
