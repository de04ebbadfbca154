// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides samples into the path and other work, on an emulator that counts instructions.
//!
//! On such an emulator, a sample is the *work of all CPUs*: the number of instructions that all CPUs together executed
//! during the sample, in turn. On a machine whose CPUs run in parallel, a wake-up takes less time: only the
//! instructions from the waker's store to the woken task count. They are the *path*. This crate separates a sample's
//! critical path from the other work.
//!
//! A plugin of the emulator (crate `recorder`) observes the instructions that CPUs execute. A [`Chart`] lists which
//! instructions of the images matter, and why ([`Reasons`]). A [`Cutter`] makes a [`Sample`] from the events between
//! two readings of the clock. The images are the same with and without the plugin, so the plugin adds nothing to the
//! measured code.
//!
//! # The path
//!
//! Each CPU has a clock, which counts the instructions that it executes ([`Counts`]). The path of a sample is how far
//! the measuring CPU's clock advances, if clocks are set by these rules:
//!
//! - A CPU that is woken by an interrupt continues from the value of the sender's clock at the time when the sender
//!   sent the interrupt. So the sender's later instructions are not on the path, and the receiver's instructions after
//!   its wait are.
//! - A CPU may find in memory a value that another CPU stored while the first one waited. The first CPU then continues
//!   from the value of the other CPU's clock at the store, plus its own instructions since its wait.
//! - The first of these events that a CPU finds after a wait is the cause. If the CPU waits several times without
//!   informing other CPUs in between, the latest of the causes is taken.
//!
//! One thread runs all CPUs, so a CPU executes nothing while another one runs. "While it waited" therefore means "while
//! it stood still, since it last looked for stores". A CPU with a trapped WFE, for example, stands still at EL2, and
//! once more at EL1 before the guest looks.
//!
//! # Any guest
//!
//! A chart contains our images and, for Linux, the user-space program that marks its samples. In all other code, such
//! as that of a kernel or of another hypervisor, the reasons follow from the instructions alone ([`Reasons::of_word`]).
//! If a CPU was stopped in the middle of its code when a sample began, instead of in a wait, the path of this sample is
//! unknown.

//! # In time
//!
//! A simulator whose CPUs run in parallel writes each instruction with its time to a trace. [`timed()`] finds the paths
//! of samples in these traces.

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

pub use block::{Block, LoneAccesses, branch_target, is_access};
pub use chart::{Chart, Identity, Image};
pub use charted::Charted;
pub use clock::{Stretch, Via};
pub use committed::{Committed, Core};
pub use counts::{Class, Counts};
pub use cutter::{Cutter, NO_CELL, Recorded, Tpidr, sgi_of_version2};
pub use exits::{Cause, Exits};
pub use halt::resume_index;
pub use reasons::{Reasons, WRITE_SGIR};
pub use sample::{Sample, Samples, from_text, to_text};
pub use timed::timed;
pub use trace::{Code, Entry, Piece, Pieces, Timing, Trace, Traces, Waited, pieces};
