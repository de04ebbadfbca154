// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests that boot, the tests of the host around them, and the soak.

// Only programs of this workspace use these items, so a field with a clear name needs no doc comment.
#![allow(missing_docs)]

pub mod audit;
pub mod soak;
pub mod suite;
