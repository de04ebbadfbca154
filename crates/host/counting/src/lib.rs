// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the cost of a path in instructions, registers and cycles, and lists the path.

// This crate is only for programs of this workspace, so a field whose name is clear needs no comment.
#![allow(missing_docs)]

pub mod asm;
pub mod cost;
