// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and termination: noted here, acted on where something must be ended.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt is noted instead of ending the program.
pub fn catch() -> Result<()> {
    let caught = ctrlc::try_set_handler(|| REQUESTED.store(true, Ordering::Relaxed));
    match caught {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        Err(error) => Err(error).context("Ctrl-C can't be caught"),
    }
}

/// Whether the program should end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// The outcome of a step, unless the program should end: the programs that the
/// step runs are interrupted as well, and what they say then is no cause.
pub fn or<T>(outcome: Result<T>) -> Result<T> {
    if requested() {
        bail!("interrupted");
    }
    outcome
}
