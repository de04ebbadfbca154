// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses parts of registers that are arrays of bits or bytes, and lists the set bits.

use crate::Access;

/// Returns the bytes of `value` (the register at `start`) that `access` reads.
pub fn read_part(access: Access, start: u64, value: u64) -> u64 {
    let shift = 8 * (access.offset - start);
    let unused = 64 - 8 * access.size;
    (value >> shift) << unused >> unused
}

/// Returns `value` (the register at `start`) after the write of `access`.
pub fn replace_part(access: Access, start: u64, value: u64, written: u64) -> u64 {
    let shift = 8 * (access.offset - start);
    let mask = (u64::MAX >> (64 - 8 * access.size)) << shift;
    value & !mask | written << shift & mask
}

/// Whether `access` covers a naturally aligned part of a register of `size` bytes,
/// or all of it.
pub const fn is_aligned_part(access: Access, size: u32) -> bool {
    access.size <= size && access.offset.is_multiple_of(access.size as u64)
}

/// Returns the numbers of the bits that are set, from the lowest.
pub fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        lowest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_that_is_set_once() {
        assert!(ones(0b1010_0001).eq([0, 5, 7]));
        assert!(ones(u64::MAX).eq(0..64));
        assert_eq!(ones(0).next(), None);
    }
}
