// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what a path costs: instructions, registers, cycles; and lists it.

// Public to the programs of this workspace alone: a field whose name says it all has no line.
#![allow(missing_docs)]

pub mod asm;
pub mod cost;
