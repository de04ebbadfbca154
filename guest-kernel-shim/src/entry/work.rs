// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks how much of a plan's work is done, in passes over cells and in the time that these passes should take.

use plan::PASSES;

use super::Entry;
use crate::clock;

/// The work of a plan, and how much of it is done.
pub struct Work {
    /// Number of passes over cells that are done, or no longer needed.
    pub done: usize,
    /// Maximum number of passes.
    pub of: usize,
    /// Estimated microseconds of guest time for the passes that are done.
    pub done_us: u64,
    /// Estimated microseconds of guest time for all passes.
    pub of_us: u64,
}

impl Work {
    /// Adds up the work of all `entries`.
    pub fn from_entries(entries: &[Entry]) -> Self {
        let pass_us: u64 = entries.iter().map(guess_us).sum();
        Self {
            done: 0,
            of: entries.len() * PASSES as usize,
            done_us: 0,
            of_us: pass_us * u64::from(PASSES),
        }
    }

    /// Records that a pass over the cell of `entry` is done, whether the cell ran or not.
    pub fn add(&mut self, entry: &Entry) {
        self.done += 1;
        self.done_us += guess_us(entry);
    }
}

/// Estimates the microseconds of guest time for a pass over a cell; 0 if the cell is not run.
fn guess_us(entry: &Entry) -> u64 {
    match entry.skipped {
        Some(_) => 0,
        None => {
            let instructions = clock::counts_instructions();
            let time = entry
                .cell
                .pass_time(&entry.limits, clock::frequency(), instructions);
            time.expected_us
        }
    }
}
