// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures, and with which status this program ends.

use std::fmt;

/// Why, in one line, and the exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The thing, the place and the remedy.
    pub why: String,
    /// 1 it failed while it ran, 2 it could not be tried, 128 + N signal N asked for the end.
    pub status: u8,
}

impl Failure {
    /// It failed while it ran.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            status: 1,
        }
    }

    /// It could not be tried.
    pub fn bad_input(why: impl fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            status: 2,
        }
    }

    /// Signal `number` asked for the end.
    pub fn signal(number: usize) -> Self {
        Self {
            why: format!("ended by signal {number}"),
            status: 128 + number as u8,
        }
    }
}
