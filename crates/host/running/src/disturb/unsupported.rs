// SPDX-License-Identifier: MIT OR Apache-2.0
//! For systems where single threads can't be held.

use std::time::Duration;

use anyhow::{Result, bail};

/// Returns why nothing can be disturbed here.
pub fn obstacle() -> Option<&'static str> {
    Some("only Linux holds single threads of another process; leave --disturb out")
}

/// Fails here. For Linux, there is a function that stops the process.
pub fn stop_process(_: u32, _: Duration) -> Result<bool> {
    bail!("not here")
}

/// Fails here. For Linux, there is a function that holds a thread.
pub fn hold_thread(_: u32, _: Duration, _: impl FnOnce(usize) -> usize) -> Result<bool> {
    bail!("not here")
}
