// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helps to measure the costs of paths: defines the counted paths, the instructions that mark them
//! in the guest, and the trace in which the recorder stores the instructions between marks.
//!
//! The guest executes a mark before and after each pass of a path, at EL1 only. A mark is the
//! instruction `MOVZ XZR, #imm16`: it changes nothing (DDI 0487K.a, C6.2.255; register 31 is
//! the zero register), no compiler emits it, and its immediate names the path that begins or
//! ends. Marks add nothing to the count, and an image with marks runs the same if nothing reads
//! them.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod mark;
mod path;
mod sample_mark;
mod trace;

pub use mark::{Edge, Mark};
pub use path::Path;
pub use sample_mark::SampleMark;
pub use trace::{Level, TraceEntry};
