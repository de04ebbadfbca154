// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes reports, comparisons and histories from results, in each format.

// This crate is for programs of this workspace only. A field with a clear name needs no comment.
#![allow(missing_docs)]

pub mod compare;
pub mod format;
#[cfg(test)]
mod goldens;
pub mod over_time;
pub mod report;
pub mod saved_runs;
pub mod watts;
