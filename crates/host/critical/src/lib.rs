// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the samples of an emulator that counts instructions into path and other work.
//!
//! On such an emulator a sample is the *work of all CPUs*: the number of instructions
//! that all of them executed while it lasted, one after another. On a machine whose CPUs
//! run in parallel, a wake-up takes less: only what lies on the way from the waker's
//! store to the task that runs, the *path*. This crate separates the two.
//!
//! A plugin of the emulator (crate `recorder`) observes what CPUs execute. A [`Chart`]
//! tells it which instructions of the images matter, and why ([`Reasons`]). A [`Cutter`]
//! makes a [`Sample`] of what happened between the two clock readings of each. The images
//! are the same with and without the plugin: it adds nothing to the measured code.
//!
//! # The path
//!
//! Each CPU has a clock, which counts the instructions that it executes ([`Counts`]).
//! The path of a sample is how far the clock of the measuring CPU advances, if clocks
//! follow causes:
//!
//! - A CPU that is woken by an interrupt continues from the clock that the sender had
//!   when it sent the interrupt. So what the sender does afterwards is not on the path.
//!   Instructions of the receiver after the wait are.
//! - A CPU that finds in memory what another CPU stored while it waited continues from
//!   the clock of that store, plus what it has executed since its wait.
//! - The first of these that it finds after a wait is the cause. If it waits several
//!   times without telling other CPUs anything in between, the latest of the causes counts.
//!
//! One thread runs all CPUs, so a CPU executes nothing while another one does. "While it
//! waited" therefore means "while it stood still, since it last looked": a WFE that traps stands still
//! at EL2, and once more at EL1, before the guest looks.

#![forbid(unsafe_code)]

mod chart;
mod counts;
mod cutter;
mod exits;
mod reasons;
mod sample;

pub use chart::{Chart, Image};
pub use counts::{Class, Counts};
pub use cutter::{Cutter, NO_CELL, Tpidr};
pub use exits::{Cause, Exits};
pub use reasons::Reasons;
pub use sample::{Sample, Samples, from_text, to_text};
