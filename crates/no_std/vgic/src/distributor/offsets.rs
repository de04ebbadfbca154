// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the SPI that an offset or a value of the distributor's registers names.

use super::SPIS;
use crate::PRIVATE;

/// Returns the index of an SPI; `None` for other INTIDs. With affinity routing, the registers of INTIDs 0
/// to 31 are in the redistributors and read as zero here.
pub const fn spi_index(intid: u64) -> Option<usize> {
    if intid >= PRIVATE as u64 && intid < PRIVATE as u64 + SPIS as u64 {
        Some((intid - PRIVATE as u64) as usize)
    } else {
        None
    }
}

pub fn spi_bit(intid: u64) -> u64 {
    spi_index(intid & 0x3ff).map_or(0, |spi| 1 << spi)
}

/// Returns the array (one bit per INTID) to which the register at `offset` belongs, and the register's first SPI.
pub fn bit_array(offset: u64) -> Option<(u64, u32)> {
    if !(0x080..0x400).contains(&offset) || !offset.is_multiple_of(4) {
        return None;
    }
    let word = offset % 0x80 / 4;
    (1..=2)
        .contains(&word)
        .then(|| (offset & !0x7f, 32 * (word as u32 - 1)))
}

/// Returns the first SPI of the ICFGR at `offset`; each ICFGR covers 16 SPIs.
pub fn icfgr_spi(offset: u64) -> Option<u32> {
    let word = offset.checked_sub(0xc00)? / 4;
    (2..6).contains(&word).then(|| 16 * (word as u32 - 2))
}

/// Returns the SPI of the IROUTER at `offset`, and the offset at which that register starts.
pub const fn irouter_spi(offset: u64) -> (Option<usize>, u64) {
    (spi_index((offset - 0x6000) / 8), offset & !7)
}
