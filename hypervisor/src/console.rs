// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints EL2's own lines, and the guest's lines.

pub mod guest_uart;
pub mod line;
pub mod log;
