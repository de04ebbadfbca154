// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that boot, tests of the host around them, and the soak.

// Public to the programs of this workspace alone: a field with a clear name has no line.
#![allow(missing_docs)]

pub mod audit;
pub mod soak;
pub mod suite;
