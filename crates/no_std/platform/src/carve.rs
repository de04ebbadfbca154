// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the free RAM, outside all regions in use, between the hypervisor and the guest.

use core::fmt;

use crate::{Region, Reserved};

/// The guest's RAM begins and ends at multiples of this, the block size of stage 2.
pub const GUEST_ALIGN: u64 = 2 << 20;

/// Maximum size of the guest's RAM: more RAM would only take more time to prepare.
pub const GUEST_MOST: u64 = 4 << 30;

/// Bytes of page tables in the hypervisor's RAM.
const TABLES: u64 = 0x4_0000;
/// Additional bytes for each CPU: the hypervisor's data for it, and a page table, since its
/// redistributor may be far from the others.
pub const PER_CPU: u64 = 0xb000;

/// Bytes of the hypervisor's RAM on a machine with `cpus` CPUs, without the RAM of their
/// neighbours.
#[must_use]
pub const fn pool(cpus: u64) -> u64 {
    TABLES + cpus * PER_CPU
}

/// The RAM of the hypervisor and of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The hypervisor's page tables and per-CPU data.
    pub hypervisor: Region,
    /// The guest's RAM.
    pub guest: Region,
}

/// Which of the two, hypervisor or guest, lacks RAM, and the minimum number of contiguous bytes that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The hypervisor's RAM.
    Hypervisor(u64),
    /// The guest's RAM.
    Guest(u64),
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, bytes) = match self {
            Self::Hypervisor(bytes) => ("hypervisor", bytes),
            Self::Guest(bytes) => ("guest", bytes),
        };
        write!(
            f,
            "RAM: no {bytes} free bytes for the {whose}; give the machine more memory"
        )
    }
}

/// Divides the part of `memory` outside all of `taken`: the hypervisor gets `hypervisor` bytes, a
/// multiple of 4096, and the guest gets the largest region that remains.
///
/// # Errors
/// Returns [`Short`] if the free RAM is too small for the hypervisor or for the guest.
pub fn divide(memory: &[Region], taken: &[Region], hypervisor: u64) -> Result<Division, Short> {
    const PAGE: u64 = 4096;
    let free = largest_free(memory, taken, PAGE).filter(|free| free.size >= hypervisor);
    let free = free.ok_or(Short::Hypervisor(hypervisor))?;
    // The hypervisor gets the top, so that the guest's RAM starts on a large boundary.
    let hypervisor = Region {
        base: free.end() - hypervisor,
        size: hypervisor,
    };
    let all: Reserved = taken.iter().copied().chain([hypervisor]).collect();
    let guest = largest_free(memory, &all, GUEST_ALIGN);
    let mut guest = guest.ok_or(Short::Guest(GUEST_ALIGN))?;
    guest.size = guest.size.min(GUEST_MOST);
    Ok(Division { hypervisor, guest })
}

/// Returns the largest free range of `memory` whose base is a multiple of `align` (a power of two),
/// outside all of `taken`. The range's size is a multiple of `align`.
///
/// Returns `None` if not even one `align`-sized block is free.
#[must_use]
pub fn largest_free(memory: &[Region], taken: &[Region], align: u64) -> Option<Region> {
    memory
        .iter()
        .filter_map(|bank| largest_in(*bank, taken, align))
        .max_by_key(|region| (region.size, core::cmp::Reverse(region.base)))
}

fn largest_in(bank: Region, taken: &[Region], align: u64) -> Option<Region> {
    let cuts = taken.iter().filter(|region| region.overlaps(&bank));
    let cuts: Reserved = cuts.copied().collect();
    let mut best: Option<Region> = None;
    let mut start = bank.base;
    let ends = cuts.iter().map(|cut| (cut.base, cut.end()));
    for (gap_end, next_start) in ends.chain([(bank.end(), bank.end())]) {
        let gap = aligned_part(start, gap_end, align);
        if gap.is_some_and(|gap| best.is_none_or(|best| gap.size > best.size)) {
            best = gap;
        }
        start = start.max(next_start);
    }
    best
}

/// Returns the part of `start..end` that begins and ends on multiples of `align`.
fn aligned_part(start: u64, end: u64, align: u64) -> Option<Region> {
    let base = start.checked_next_multiple_of(align)?;
    let size = end.checked_sub(base)? & !(align - 1);
    (size > 0).then_some(Region { base, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn region(base: u64, size: u64) -> Region {
        Region { base, size }
    }

    #[test]
    fn the_largest_gap_wins() {
        let memory = [region(0x4000_0000, 256 * MIB)];
        let taken = [
            region(0x4800_0000, MIB),
            region(0x4020_0000, 4 * MIB + 4096),
        ];
        let free = largest_free(&memory, &taken, 2 * MIB).unwrap();
        assert_eq!(free, region(0x4820_0000, 126 * MIB));
    }

    #[test]
    fn the_hypervisor_gets_the_end_of_the_largest_gap_and_the_guest_the_rest() {
        let memory = [region(0x4000_0000, 20 * MIB)];
        let taken = [region(0x4020_0000, MIB), region(0x40a0_0000, MIB)];
        let division = divide(&memory, &taken, 0x10_0000).unwrap();
        assert_eq!(division.hypervisor, region(0x4130_0000, MIB));
        assert_eq!(division.guest, region(0x4040_0000, 6 * MIB));
        assert_eq!(
            divide(&memory, &taken, 10 * MIB),
            Err(Short::Hypervisor(10 * MIB))
        );
        let small = [region(0x4000_0000, 2 * MIB)];
        assert_eq!(divide(&small, &[], 0x1000), Err(Short::Guest(GUEST_ALIGN)));
        let large = [region(1 << 40, 1 << 40)];
        assert_eq!(divide(&large, &[], 0x1000).unwrap().guest.size, GUEST_MOST);
    }

    #[test]
    fn overlapping_and_outside_reservations_are_harmless() {
        let memory = [region(0, 16 * MIB), region(1 << 40, 8 * MIB)];
        let taken = [
            region(0, 9 * MIB),
            region(MIB, 2 * MIB),
            region(1 << 50, MIB),
        ];
        let free = largest_free(&memory, &taken, 2 * MIB).unwrap();
        assert_eq!(free, region(1 << 40, 8 * MIB));
    }

    #[test]
    fn nothing_free_is_none() {
        let memory = [region(0x1000, 4 * MIB)];
        assert_eq!(largest_free(&memory, &memory, 4096), None);
        assert_eq!(largest_free(&[region(0x1000, 0x1000)], &[], MIB), None);
    }
}
