// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes times with known distributions from numbers in which all 64 bits are random.

/// Returns a uniformly distributed time, from half of `mean` to one and a half times `mean`.
#[must_use]
pub const fn uniform(mean: u64, random: u64) -> u64 {
    mean / 2 + ((mean as u128 * (random >> 32) as u128) >> 32) as u64
}

/// Returns an exponentially distributed time, at most 22 times `mean`.
#[must_use]
pub const fn exponential(mean: u64, random: u64) -> u64 {
    /// ln 2 with 32 fractional bits.
    const LN2: u128 = 2_977_044_472;
    // -ln(u / 2^32) = ln 2 * (32 - log2 u), u from 1 to 2^32.
    let u = (random >> 32) + 1;
    let nats = (LN2 * (32 * 65_536 - log2(u)) as u128) >> 16;
    ((mean as u128 * nats) >> 32) as u64
}

/// Returns the binary logarithm of `value`, which is not 0, with 16 fractional bits: one digit per
/// squaring (B. J. McCartney's method, as in D. E. Knuth, TAOCP 1, 1.2.2, exercise 25).
const fn log2(value: u64) -> u64 {
    let whole = value.ilog2();
    let mut digits = whole as u64;
    // The fractional digits are the logarithm of `mantissa`, which is from 1 to 2 and has 32
    // fractional bits.
    let mut mantissa = if whole > 32 {
        value >> (whole - 32)
    } else {
        value << (32 - whole)
    };
    let mut n = 0;
    while n < 16 {
        mantissa = ((mantissa as u128 * mantissa as u128) >> 32) as u64;
        let carry = mantissa >> 33;
        digits = digits << 1 | carry;
        mantissa >>= carry;
        n += 1;
    }
    digits
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        for value in [1u64, 2, 3, 10, 1000, u64::from(u32::MAX), 1 << 50] {
            let exact = (value as f64).log2() * 65_536.0;
            assert!(
                (log2(value) as f64 - exact).abs() < 3.0,
                "{value}: {} {exact}",
                log2(value)
            );
        }
    }

    #[test]
    fn distributions_have_their_mean_and_range() {
        const MEAN: u64 = 100_000;
        const COUNT: u64 = 100_000;
        // Evenly spaced numbers, instead of random ones, yield the distribution
        // itself.
        let all = || (0..COUNT).map(|n| u64::MAX / COUNT * n + u64::MAX / COUNT / 2);
        let mean = |of: fn(u64, u64) -> u64| all().map(|n| of(MEAN, n)).sum::<u64>() / COUNT;
        assert!(mean(uniform).abs_diff(MEAN) < 10);
        assert!(all().all(|n| (MEAN / 2..=MEAN * 3 / 2).contains(&uniform(MEAN, n))));
        assert!(
            mean(exponential).abs_diff(MEAN) < 50,
            "{}",
            mean(exponential)
        );
        // The median of an exponential distribution is its mean times ln 2.
        let below = all().filter(|&n| exponential(MEAN, n) < 69_315).count();
        assert!(below.abs_diff(COUNT as usize / 2) < 20, "{below}");
        assert!(exponential(MEAN, 0) < 23 * MEAN);
    }
}
