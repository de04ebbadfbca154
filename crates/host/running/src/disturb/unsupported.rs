// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the disturbances on systems where single threads can't be held.

use std::time::Duration;

use anyhow::{Result, bail};

/// Returns why nothing can be disturbed here.
pub fn obstacle() -> Option<&'static str> {
    Some("only Linux holds single threads of another process; leave --disturb out")
}

/// Always fails. The Linux version stops a process.
pub fn stop_process(_: u32, _: Duration) -> Result<bool> {
    bail!("not here")
}

/// Always fails. The Linux version holds a thread.
pub fn hold_thread(_: u32, _: Duration, _: impl FnOnce(usize) -> usize) -> Result<bool> {
    bail!("not here")
}
