// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image for measurements: nothing is planted, and an argument that asks for it is refused.

use hist::Ratio;
use plan::{Arguments, Error};

/// Refuses arguments that ask for it.
pub fn ask(arguments: &Arguments<'_>) -> Option<Error<'static>> {
    arguments.unplanted(|image| image.guest)
}

/// Bits of the counter that seem to be 0.
pub const fn hidden() -> u64 {
    0
}

/// Called when pass `_pass` of cell `_id`, of `_count` cells, begins.
pub const fn at_pass(_id: usize, _count: usize, _pass: u32) {}

/// Whether the core's clock is measured even if it tells nothing.
pub const fn looks() -> bool {
    false
}

/// How many times as fast the core seems to be after `_passes`.
pub const fn times(_passes: usize) -> u64 {
    1
}

/// Apparent ratio of CPU `_index`, at the end or at the start, for the true `ratio`.
pub const fn core(_index: usize, _end: bool, ratio: Ratio) -> Ratio {
    ratio
}
