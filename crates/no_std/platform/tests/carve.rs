// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the division of RAM, for every way to put two reservations into a bank of twelve units,
//! with a count of the units one by one.

use platform::Region;
use platform::carve::largest_free;

const FIRST: u64 = 3;
const UNITS: u64 = 12;

/// Returns the longest run of free units that begins and ends on multiples of `align`. Of equally
/// long runs, returns the first.
fn counted(taken: &[Region], align: u64) -> Option<Region> {
    let is_free = |unit: u64| !taken.iter().any(|region| region.contains(unit));
    let mut best: Option<Region> = None;
    for base in (FIRST..FIRST + UNITS).filter(|base| base % align == 0) {
        for end in (base + 1..=FIRST + UNITS).filter(|end| end % align == 0) {
            let size = end - base;
            let longer = best.is_none_or(|best| size > best.size);
            if longer && (base..end).all(is_free) {
                best = Some(Region { base, size });
            }
        }
    }
    best
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn two_reservations_anywhere() {
    let memory = [Region {
        base: FIRST,
        size: UNITS,
    }];
    let places =
        || (0..FIRST + UNITS + 2).flat_map(|base| (1..6).map(move |size| Region { base, size }));
    for one in places() {
        for two in places() {
            for align in [1, 2, 4] {
                let taken = [one, two];
                assert_eq!(
                    largest_free(&memory, &taken, align),
                    counted(&taken, align),
                    "{taken:?}"
                );
            }
        }
    }
}

#[test]
fn however_many_reservations_are_kept() {
    let memory = [Region {
        base: 0,
        size: 1000,
    }];
    let taken: Vec<Region> = (0..65)
        .map(|n| Region {
            base: 2 * n,
            size: 1,
        })
        .collect();
    let free = Region {
        base: 129,
        size: 871,
    };
    assert_eq!(largest_free(&memory, &taken, 1), Some(free));
}
