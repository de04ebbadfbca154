// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a run: `results.json` in schema 1, and `results.csv`. `docs/results.md` describes every field.
//!
//! [`records`] collects the records of a boot, and [`capture`] finds the boots in a log. [`Results::add`] converts the
//! records to results. [`Results::to_json`] and [`csv()`] write the results. [`merge`] joins runs, [`compare`] judges
//! whether a run is better than another, and [`schema`] describes the file for programs.
//!
//! The schema may get additional fields, but no field is ever renamed.

#![forbid(unsafe_code)]

pub mod bounds;
mod build;
pub mod capture;
mod cell;
mod checked_texts;
pub mod clock;
pub mod compare;
pub mod core_clocks;
pub mod counter;
mod energy;
mod from_records;
#[cfg(any(test, feature = "samples"))]
pub mod goldens;
pub mod json;
mod linux_idle;
pub mod merge;
pub mod neighbour;
mod path;
mod percentile_rounding;
pub mod program;
pub mod records;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod schema;
mod spreadsheet;
mod stats;
mod text_counts;
mod types;
mod words;

pub use build::Build;
pub use cell::{Cell, keys};
pub use core_clocks::CoreClock;
pub use energy::{EnergyModel, Watts};
pub use linux_idle::IdleState;
pub use path::{Critical, Work};
pub use percentile_rounding::Rounded;
pub use spreadsheet::csv;
pub use stats::{Bounds, Stage, Stats};
pub use text_counts::Repeated;
pub use types::{Counts, Emulator, Machine, Origin, Parameter, Results, Serrors};
pub use words::{help, valued};

/// The unit of values if the counter counts instructions and skips time in which every CPU is idle, and if samples may
/// include such time.
pub const VIRTUAL: &str = "vticks";
/// The unit of samples that count instructions.
pub const INSNS: &str = "insns";
/// All units of values. An empty unit means that the unit is unknown.
pub const UNITS: [&str; 5] = ["", INSNS, VIRTUAL, "ticks", "cycles"];
