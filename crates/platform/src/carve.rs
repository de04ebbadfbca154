// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dividing RAM: what is free once the parts that belong to somebody are out.

use arrayvec::ArrayVec;

use crate::Region;

/// The largest free range of `memory` whose base is a multiple of `align`
/// (a power of two), outside all of `taken`. Its size is a multiple of `align`.
///
/// `None` if not even one `align`-sized block is free.
#[must_use]
pub fn largest_free(memory: &[Region], taken: &[Region], align: u64) -> Option<Region> {
    memory
        .iter()
        .filter_map(|bank| largest_in(*bank, taken, align))
        .max_by_key(|region| (region.size, core::cmp::Reverse(region.base)))
}

fn largest_in(bank: Region, taken: &[Region], align: u64) -> Option<Region> {
    let mut cuts: ArrayVec<Region, 64> = ArrayVec::new();
    for region in taken.iter().filter(|region| region.overlaps(&bank)) {
        // A reservation that can't be kept makes the whole bank unusable.
        cuts.try_push(*region).ok()?;
    }
    cuts.sort_unstable_by_key(|region| region.base);
    let mut best: Option<Region> = None;
    let mut start = bank.base;
    let ends = cuts.iter().map(|cut| (cut.base, cut.end()));
    for (gap_end, next_start) in ends.chain([(bank.end(), bank.end())]) {
        let gap = aligned(start, gap_end, align);
        if gap.is_some_and(|gap| best.is_none_or(|best| gap.size > best.size)) {
            best = gap;
        }
        start = start.max(next_start);
    }
    best
}

/// The part of `start..end` that begins and ends on multiples of `align`.
fn aligned(start: u64, end: u64, align: u64) -> Option<Region> {
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
