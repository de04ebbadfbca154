// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the samples of an emulator that counts instructions into the path and other work.
//!
//! On such an emulator, a sample is the *work of all CPUs*: the number of instructions that all CPUs executed during
//! the sample, one after another. On a machine whose CPUs run in parallel, a wake-up takes less time: only the
//! instructions between the waker's store and the woken task, the *path*. This crate separates the two.
//!
//! A plugin of the emulator (crate `recorder`) observes the instructions that CPUs execute. A [`Chart`] tells it which
//! instructions of the images matter, and why ([`Reasons`]). A [`Cutter`] makes a [`Sample`] from the events between
//! two clock readings. The images are the same with and without the plugin, which adds nothing to the measured code.
//!
//! # The path
//!
//! Each CPU has a clock, which counts the instructions that it executes ([`Counts`]). The path of a sample is the
//! advance of the measuring CPU's clock, where clocks follow causes by these rules:
//!
//! - A CPU that is woken by an interrupt continues from the sender's clock at the time when it sent the interrupt. So
//!   the sender's later instructions are not on the path, and the receiver's instructions after the wait are.
//! - A CPU that finds in memory a value that another CPU stored while the first one waited continues from the clock
//!   of that store, plus its own instructions since its wait.
//! - The first of these events that a CPU finds after a wait is the cause. If the CPU waits several times without
//!   telling other CPUs anything in between, the latest of the causes counts.
//!
//! One thread runs all CPUs, so a CPU executes nothing while another one executes. "While it waited" therefore means
//! "while it stood still, since it last looked": a trapped WFE stands still at EL2, and once more at EL1 before the
//! guest looks.
//!
//! # Any guest
//!
//! A chart has our images and, for Linux, the user-space program that marks its samples. In all other code, such as a
//! kernel's or another hypervisor's, the reasons follow from the instructions alone ([`Reasons::of_word`]). If a CPU
//! was stopped in the middle of its code, and not in a wait, when a sample began, the path of this sample is unknown.

//! # In time
//!
//! A simulator whose CPUs run in parallel writes each instruction with its time. [`timed()`] finds the path of its samples
//! in these traces.

#![forbid(unsafe_code)]

mod block;
mod chart;
mod charted;
mod clock;
mod committed;
mod counts;
mod cutter;
mod exits;
mod halt;
mod reasons;
mod sample;
mod timed;
mod trace;

pub use block::Block;
pub use chart::{Chart, Identity, Image};
pub use charted::Charted;
pub use clock::{Stretch, Via};
pub use committed::{Committed, Core};
pub use counts::{Class, Counts};
pub use cutter::{Cutter, NO_CELL, Recorded, Tpidr};
pub use exits::{Cause, Exits};
pub use halt::resume_index;
pub use reasons::Reasons;
pub use sample::{Sample, Samples, from_text, to_text};
pub use timed::timed;
pub use trace::{Code, Entry, Piece, Pieces, Timing, Trace, Traces, Waited, pieces};
