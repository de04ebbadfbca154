// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the cost of a path in instructions, registers and cycles, and lists the path.

// Public to the programs of this workspace alone: a field whose name says it all has no line.
#![allow(missing_docs)]

pub mod asm;
pub mod cost;
