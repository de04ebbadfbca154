// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reproducible random numbers.

/// Marsaglia's xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators, scrambled", 2016): nothing depends on its quality.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts with `seed`.
    #[must_use]
    #[inline]
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The generator of step `step` of stream `stream`: its numbers depend only on these and the
    /// seed, not on earlier draws.
    #[must_use]
    pub fn at(seed: u64, stream: u64, step: u64) -> Self {
        Self::new(mix(mix(mix(seed) ^ stream) ^ step))
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 32) % limit.max(1)
    }

    /// Returns `true` one time in `times`.
    #[inline]
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A random element of `choice`.
    pub fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }
}

/// Spreads neighbouring numbers (the finalizer of splitmix64: G. Steele, D. Lea,
/// C. Flood, "Fast splittable pseudorandom number generators", 2014).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
