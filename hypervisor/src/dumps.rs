// SPDX-License-Identifier: MIT OR Apache-2.0
//! When something is wrong: finding that out, and showing the state of every CPU.

mod broken_rules;
pub mod deadline;
pub mod dump;
pub mod failing;
pub mod own_timer;
mod planted_serrors;
pub mod serror;
pub mod watch_points;
pub mod watchdog;
