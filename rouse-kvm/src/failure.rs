// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures and the exit status for each.

use std::fmt;

/// A failure: its message in one line, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The problem, the place and the remedy.
    pub why: String,
    /// 1: the request failed while it ran. 2: the request could not be tried. 128 + N: signal N requested the end.
    pub status: u8,
}

impl Failure {
    /// Returns the failure of a run that had started.
    pub fn run_failed(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            status: 1,
        }
    }

    /// Returns the failure of a request that could not be tried.
    pub fn bad_input(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            status: 2,
        }
    }

    /// Returns the failure for the signal `number`, which requested the end.
    pub fn ended_by_signal(number: usize) -> Self {
        Self {
            why: format!("ended by signal {number}"),
            status: 128 + number as u8,
        }
    }
}
