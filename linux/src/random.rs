// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chance, by a seed.

/// SplitMix64 (Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Random(u64);

impl Random {
    /// Another one for each `number`.
    pub const fn new(seed: u64, number: u64) -> Self {
        Self(seed ^ (number + 1).wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    #[must_use]
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_number_say_what_comes() {
        let some = |seed, number| {
            let mut random = Random::new(seed, number);
            [(); 20].map(|()| random.within(5, 1_000_000))
        };
        assert_eq!(some(1, 0), some(1, 0));
        assert_ne!(some(1, 0), some(1, 1));
        assert_ne!(some(1, 0), some(2, 0));
        assert!(
            some(1, 0)
                .iter()
                .all(|number| (5..=1_000_000).contains(number))
        );
        assert_eq!(Random::new(1, 0).within(3, 3), 3);
    }
}
