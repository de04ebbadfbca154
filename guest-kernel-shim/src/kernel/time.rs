// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts ticks and nanoseconds by multiplication alone, because a division would be most of an idle loop's work.

use spin::once::Once;

use crate::clock;

/// Nanoseconds per tick and ticks per nanosecond, with 32 fractional bits.
static RATES: Once<(u64, u64)> = Once::new();

fn rates() -> (u64, u64) {
    *RATES.call_once(|| {
        let frequency = u128::from(clock::frequency());
        let second = 1_000_000_000u128;
        (
            ((second << 32) / frequency) as u64,
            ((frequency << 32) / second) as u64,
        )
    })
}

fn scaled(value: u64, rate: u64) -> u64 {
    ((u128::from(value) * u128::from(rate)) >> 32) as u64
}

/// Converts ticks to nanoseconds.
#[inline]
pub fn ns(ticks: u64) -> u64 {
    scaled(ticks, rates().0)
}

/// Converts nanoseconds to ticks.
#[inline]
pub fn ticks(ns: u64) -> u64 {
    scaled(ns, rates().1)
}
