// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests that boot, the host tests that run next to them, and the soak.

// Only programs of this workspace use these items, so a field with a clear name needs no doc comment.
#![allow(missing_docs)]

pub mod audit;
pub mod soak;
pub mod suite;
