// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records any number of parts of the RAM that are in use.

use core::ops::Deref;

use arrayvec::ArrayVec;

use crate::Region;

/// Maximum number of parts recorded separately.
pub const MAX_RESERVED: usize = 64;

/// Parts of the RAM that are in use, in the order of their addresses. No part is ever lost: beyond
/// [`MAX_RESERVED`], the two parts with the smallest gap between them merge into one, which includes the gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved(ArrayVec<Region, { MAX_RESERVED + 1 }>);

impl Reserved {
    /// Returns a list in which no part is in use.
    #[must_use]
    pub const fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// Adds a part.
    pub fn keep(&mut self, region: Region) {
        if region.size == 0 {
            return;
        }
        let list = &mut self.0;
        let at = list.partition_point(|other| other.base < region.base);
        list.insert(at, region);
        // The previous region may reach into the new one, and the new one into later ones.
        let mut at = at.saturating_sub(1);
        while at + 1 < list.len() {
            if list[at].end() >= list[at + 1].base {
                merge_with_next(list, at);
            } else if list[at].base < region.base {
                at += 1;
            } else {
                break;
            }
        }
        if list.is_full() {
            let gap = |at: &usize| list[at + 1].base - list[*at].end();
            let least = (0..list.len() - 1).min_by_key(gap);
            least.into_iter().for_each(|at| merge_with_next(list, at));
        }
    }
}

/// Merges the region at `at` with the next region.
fn merge_with_next(list: &mut ArrayVec<Region, { MAX_RESERVED + 1 }>, at: usize) {
    let after = list.remove(at + 1);
    let end = list[at].end().max(after.end());
    list[at].size = end - list[at].base;
}

impl Deref for Reserved {
    type Target = [Region];

    fn deref(&self) -> &[Region] {
        &self.0
    }
}

impl FromIterator<Region> for Reserved {
    fn from_iter<T: IntoIterator<Item = Region>>(regions: T) -> Self {
        let mut reserved = Self::new();
        regions.into_iter().for_each(|region| reserved.keep(region));
        reserved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region((base, size): (u64, u64)) -> Region {
        Region { base, size }
    }

    #[test]
    fn those_that_touch_become_one_and_of_too_many_the_nearest() {
        let of = |regions: &[(u64, u64)]| -> Vec<Region> {
            let reserved: Reserved = regions.iter().copied().map(region).collect();
            reserved.to_vec()
        };
        assert_eq!(
            of(&[(8, 4), (0, 0), (0, 8), (20, 1)]),
            [(0, 12), (20, 1)].map(region)
        );
        assert_eq!(of(&[(0, 100), (5, 1), (100, 1)]), [(0, 101)].map(region));
        let many: Vec<(u64, u64)> = (0..MAX_RESERVED as u64).map(|n| (n * 100, 1)).collect();
        assert_eq!(of(&many).len(), MAX_RESERVED);
        let one_more = of(&[&many[..], &[(51, 10)]].concat());
        assert_eq!(one_more.len(), MAX_RESERVED);
        // The new region has a gap of 39 bytes after it, and one of 50 bytes before it.
        assert_eq!(one_more[1], region((51, 50)));
        assert_eq!(of(&[(u64::MAX - 1, 5), (u64::MAX - 9, 2)]).len(), 2);
    }

    proptest! {
        #[test]
        fn none_is_lost(all in proptest::collection::vec((0u64..10_000, 0u64..50), 0..200)) {
            let reserved: Reserved = all.iter().copied().map(region).collect();
            prop_assert!(reserved.len() <= MAX_RESERVED);
            prop_assert!(reserved.windows(2).all(|pair| pair[0].end() < pair[1].base));
            for one in all.into_iter().map(region).filter(|one| one.size > 0) {
                let kept = |part: &Region| part.base <= one.base && one.end() <= part.end();
                prop_assert!(reserved.iter().any(kept), "{one:?}");
            }
        }
    }
}
