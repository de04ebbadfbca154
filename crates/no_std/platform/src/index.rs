// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the CPU with a given affinity in a time that does not depend on the number of CPUs: a hash
//! table with open addressing, at most a quarter full.

use crate::MAX_CPUS;

const SLOTS: usize = 4 * MAX_CPUS;
const FREE: u16 = u16::MAX;

const _: () = assert!(SLOTS.is_power_of_two() && MAX_CPUS < FREE as usize);

/// The numbers of CPUs by affinity.
#[derive(Clone, Debug)]
pub struct Index([u16; SLOTS]);

impl Index {
    /// Indexes at most [`MAX_CPUS`] CPUs by their `affinities`, in the order of their numbers.
    #[must_use]
    pub fn new(affinities: impl Iterator<Item = u64>) -> Self {
        let mut slots = [FREE; SLOTS];
        for (number, affinity) in affinities.take(MAX_CPUS).enumerate() {
            let mut slot = first_slot(affinity);
            while slots[slot] != FREE {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = number as u16;
        }
        Self(slots)
    }

    /// Returns the number of the CPU with `affinity`. `of` returns the affinity of the CPU with a
    /// given number; the search needs it because a slot on the way may hold another CPU.
    #[inline]
    pub fn find(&self, affinity: u64, of: impl Fn(usize) -> u64) -> Option<usize> {
        let mut slot = first_slot(affinity);
        loop {
            let number = self.0[slot];
            if number == FREE {
                return None;
            }
            if of(number.into()) == affinity {
                return Some(number.into());
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// Returns the first slot to check: the upper bits of the product of the affinity and the constant 2^64 / golden
/// ratio, a product that scatters values that differ in few bits (Knuth, The Art of Computer Programming, volume 3,
/// 6.4).
fn first_slot(affinity: u64) -> usize {
    (affinity.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_finds_what_a_search_finds(
            affinities in proptest::collection::btree_set(0u64..1 << 40, 0..=MAX_CPUS),
            other in 0u64..1 << 40,
        ) {
            let all: Vec<u64> = affinities.into_iter().collect();
            let index = Index::new(all.iter().copied());
            for &one in all.iter().chain([&other]) {
                let expected = all.iter().position(|&affinity| affinity == one);
                prop_assert_eq!(index.find(one, |number| all[number]), expected);
            }
        }
    }

    /// Machines number their CPUs in clusters of 16, one or four.
    #[test]
    fn real_machines_have_short_ways() {
        for shape in [16, 1, 4] {
            let all: Vec<u64> = (0..MAX_CPUS as u64)
                .map(|n| ((n / shape) << 8) + n % shape)
                .collect();
            let used: BTreeSet<usize> = all.iter().map(|&affinity| first_slot(affinity)).collect();
            assert!(used.len() * 2 > MAX_CPUS, "{shape}: {} places", used.len());
        }
    }
}
