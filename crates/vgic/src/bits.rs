// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that are arrays: a part of one as an access sees it.

use crate::Access;

/// The bytes of `value` (the register at `start`) that `access` reads.
pub fn part(access: Access, start: u64, value: u64) -> u64 {
    let shift = 8 * (access.offset - start);
    let unused = 64 - 8 * access.size;
    (value >> shift) << unused >> unused
}

/// `value` (the register at `start`) after the write of `access`.
pub fn replaced(access: Access, start: u64, value: u64, written: u64) -> u64 {
    let shift = 8 * (access.offset - start);
    let mask = (u64::MAX >> (64 - 8 * access.size)) << shift;
    value & !mask | written << shift & mask
}

/// Whether `access` is a naturally aligned part, not larger than `size` bytes,
/// of a register of `size` bytes.
pub const fn fits(access: Access, size: u32) -> bool {
    access.size <= size && access.offset.is_multiple_of(access.size as u64)
}
