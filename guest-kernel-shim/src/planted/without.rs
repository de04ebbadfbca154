// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces `with` in an image for measurements: no fault is planted, and arguments that ask for one are refused.

use hist::Ratio;
use plan::{Arguments, Error};

/// Refuses boot arguments that only images for tests serve.
pub fn read_arguments(arguments: &Arguments<'_>) -> Option<Error<'static>> {
    arguments.unplanted(|image| image.guest)
}

/// Returns the bits of the counter that seem to be 0.
pub const fn hidden_bits() -> u64 {
    0
}

/// Is called when pass `_pass` of cell `_id`, of `_count` cells, begins.
pub const fn at_pass(_id: usize, _count: usize, _pass: u32) {}

/// Whether the core's clock is measured even where it has no meaning.
pub const fn measures_always() -> bool {
    false
}

/// Returns how many times as fast the core seems to be after `_passes`.
pub const fn speed_factor(_passes: usize) -> u64 {
    1
}

/// Returns the apparent ratio of CPU `_index`, at the end or at the start, for the true `ratio`.
pub const fn apparent_ratio(_index: usize, _end: bool, ratio: Ratio) -> Ratio {
    ratio
}
