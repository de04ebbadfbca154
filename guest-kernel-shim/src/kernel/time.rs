// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts ticks and nanoseconds by multiplication alone, because a division would be most of an idle loop's work.

use spin::once::Once;

use crate::clock;

/// Nanoseconds per tick and ticks per nanosecond, with 32 fractional bits.
static RATES: Once<(u64, u64)> = Once::new();

fn conversion_rates() -> (u64, u64) {
    *RATES.call_once(|| {
        let frequency = u128::from(clock::frequency());
        let second = 1_000_000_000u128;
        (
            ((second << 32) / frequency) as u64,
            ((frequency << 32) / second) as u64,
        )
    })
}

fn scale(value: u64, rate: u64) -> u64 {
    ((u128::from(value) * u128::from(rate)) >> 32) as u64
}

/// Converts ticks to nanoseconds.
#[inline]
pub fn ticks_to_ns(ticks: u64) -> u64 {
    scale(ticks, conversion_rates().0)
}

/// Converts nanoseconds to ticks.
#[inline]
pub fn ns_to_ticks(ns: u64) -> u64 {
    scale(ns, conversion_rates().1)
}
