// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the exits of the guest: from the vectors to the handler of each exit, and back.

pub mod enter;
pub mod fast_paths;
pub mod fast_paths_version2;
pub mod hvc;
pub mod inject;
mod instruction;
pub mod knobs;
pub mod mmio;
mod page;
pub mod psci;
pub mod registers;
pub mod sgi;
pub mod shared;
pub mod synchronous;
pub mod sysreg;
pub mod vectors;
pub mod wfx;
