// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the samples of an emulator apart that counts instructions.
//!
//! There a sample is the number of instructions that all CPUs executed while it
//! lasted: the work of all CPUs, one after another. What a wake-up would take on a
//! machine whose CPUs run at the same time is less: what lies on the way from the
//! waker's store to the task that runs, the *path*. This crate tells the two apart.
//!
//! A plugin of the emulator (crate `recorder`) sees what CPUs execute; a [`Chart`]
//! tells it which instructions of the images matter and why ([`Kind`]); a [`Cutter`]
//! makes a [`Sample`] of what happened between the two clock readings of each.
//! Nothing is added to what is measured: images with and without anybody who looks
//! on are the same.
//!
//! # The path
//!
//! Each CPU has a clock of its own, which counts what it executes ([`Counts`]). The
//! path of a sample is what the clock of the CPU that measures advances by, where
//! clocks follow the cause:
//!
//! - A CPU that was woken goes on from the clock of the one that woke it, as that
//!   was when the interrupt was sent; so what the sender does afterwards is beside
//!   the path. What the receiver executes from its first instruction after the
//!   wait is on it.
//! - A CPU that finds in memory what another one has stored while it waited goes on
//!   from the clock of that store, with what it executed since it waited.
//! - What it finds first after a wait is the cause; of the causes of several waits in
//!   which it told others nothing, the latest one counts.
//!
//! With one thread for all CPUs a CPU executes nothing while another one does, so
//! "while it waited" is "since it executed its last instruction".

#![forbid(unsafe_code)]

mod chart;
mod counts;
mod cutter;
mod exits;
mod kind;
mod sample;

pub use chart::{Chart, Image};
pub use counts::{Class, Counts};
pub use cutter::{Cutter, NO_CELL, Who};
pub use exits::{Cause, Exits};
pub use kind::Kind;
pub use sample::{Sample, Samples, from_text, to_text};
