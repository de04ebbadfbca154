// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects failures, and prints the state of every CPU.

pub mod deadline;
pub mod dump;
pub mod own_timer;
pub mod serror;
pub mod watch_points;
pub mod watchdog;
