// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that boot, those of the host around them, and the soak.

// Public to the programs of this workspace alone: a field whose name says it all has no line.
#![allow(missing_docs)]

pub mod audit;
pub mod soak;
pub mod suite;
