// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers from results: reports, comparisons, histories, in each format.

// Public to the programs of this workspace alone: a field whose name says it all has no line.
#![allow(missing_docs)]

pub mod compare;
pub mod format;
#[cfg(test)]
mod goldens;
pub mod over_time;
pub mod report;
pub mod saved_runs;
pub mod watts;
