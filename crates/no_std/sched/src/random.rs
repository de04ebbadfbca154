// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates reproducible random numbers.

/// Marsaglia's xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016). Nothing depends on the quality of its numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator that starts with `seed`.
    #[must_use]
    #[inline]
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// Creates the generator for step `step` of stream `stream`. The numbers depend only on step,
    /// stream and seed, not on earlier draws.
    #[must_use]
    pub fn at(seed: u64, stream: u64, step: u64) -> Self {
        Self::new(mix(mix(mix(seed) ^ stream) ^ step))
    }

    /// Returns the next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `limit`.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 32) % limit.max(1)
    }

    /// Returns `true` once in `times` calls on average.
    #[inline]
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns a random element of `choice`.
    pub fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }
}

/// Maps neighbouring numbers to distant ones (the finalizer of splitmix64: G. Steele, D. Lea, C.
/// Flood, "Fast splittable pseudorandom number generators", 2014).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
