// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts a machine to read its first lines.

use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Result;

use super::clock::Clock;
use crate::limits::Limits;
use shell::emulator_process::{EmulatorProcess, OutputLine};
use shell::interrupt;

const TICK: Duration = Duration::from_millis(50);

/// Returns a machine's lines up to the line for which `is_last` is true, or until the machine ends or prints nothing
/// more.
pub fn startup_lines(
    mut command: Command,
    limits: Limits,
    is_last: impl Fn(&str) -> bool,
) -> Result<Vec<String>> {
    let (process, lines) = EmulatorProcess::start(&mut command)?;
    let mut clock = Clock::start();
    let mut said = Vec::new();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(OutputLine::Console(line) | OutputLine::Emulator(line)) => {
                let ends = is_last(&line);
                said.push(line);
                clock.note_progress();
                if ends {
                    return Ok(said);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(said),
        }
        clock.read_time(&process);
        let silent = clock.stall().own >= limits.without_progress;
        if silent || limits.are_over() || interrupt::requested() {
            return Ok(said);
        }
    }
}
