// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how busy a CPU was recently: the share of time for which it ran, with a weight for recency
//! that halves every 32 periods of 1024 us. This module uses the decay and the range of
//! Linux's per-entity load tracking (P. Turner, 2011;
//! `Documentation/scheduler/sched-capacity.rst`), for one average, which is updated when the CPU
//! changes between running and idle.

/// The average of a CPU that never idles.
pub const FULL: u32 = 1024;
/// Number of periods after which the weight of the past halves.
const HALF: u32 = 32;
/// Length of a period in nanoseconds.
pub const PERIOD_NS: u64 = 1024 * 1000;

/// 2^(-n/32) for n from 0 to 31, with 31 fractional bits.
const FRACTIONS: [u64; HALF as usize] = {
    // 2^(-1/32) with 62 fractional bits, rounded.
    const STEP: u128 = 4_512_867_096_753_504_463;
    let mut fractions = [0; HALF as usize];
    let mut value: u128 = 1 << 62;
    let mut n = 0;
    while n < fractions.len() {
        fractions[n] = ((value + (1 << 30)) >> 31) as u64;
        value = (value * STEP) >> 62;
        n += 1;
    }
    fractions
};

/// Returns `value` after it has decayed for `periods` periods.
#[must_use]
pub const fn decay_value(value: u64, periods: u64) -> u64 {
    let halves = periods / HALF as u64;
    if halves >= 64 {
        return 0;
    }
    let fraction = FRACTIONS[(periods % HALF as u64) as usize];
    (((value >> halves) as u128 * fraction as u128) >> 31) as u64
}

/// The average of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Average, in 2^20ths of [`FULL`].
    average: u64,
    /// Nanoseconds of the current period so far, and the number of them for which the CPU ran.
    elapsed: u64,
    ran: u64,
}

impl Load {
    /// Creates the average of a CPU that never ran.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            average: 0,
            elapsed: 0,
            ran: 0,
        }
    }

    /// Records `nanoseconds` during which the CPU was running (`running`) or was not.
    pub const fn note(&mut self, nanoseconds: u64, running: bool) {
        let mut left = nanoseconds;
        if self.elapsed + left >= PERIOD_NS {
            // The period that had begun ends, ...
            let rest = PERIOD_NS - self.elapsed;
            self.ran += if running { rest } else { 0 };
            self.end_periods(1, self.ran);
            left -= rest;
            // ... and whole periods follow, all alike.
            let whole = left / PERIOD_NS;
            if whole != 0 {
                self.end_periods(whole, if running { PERIOD_NS } else { 0 });
            }
            left %= PERIOD_NS;
            (self.elapsed, self.ran) = (0, 0);
        }
        self.elapsed += left;
        self.ran += if running { left } else { 0 };
    }

    /// Ends `periods` periods. In each of them, the CPU ran for `ran` nanoseconds.
    const fn end_periods(&mut self, periods: u64, ran: u64) {
        let share = ran * ((FULL as u64) << 20) / PERIOD_NS;
        // The average converges to `share`, so the difference decays.
        self.average = if self.average > share {
            share + decay_value(self.average - share, periods)
        } else {
            share - decay_value(share - self.average, periods)
        };
    }

    /// Returns the average, 0 to [`FULL`].
    #[must_use]
    pub const fn average(&self) -> u32 {
        ((self.average + (1 << 19)) >> 20) as u32
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_past_counts_half_after_32_periods() {
        assert_eq!(decay_value(1000, 0), 1000);
        assert!((499..=500).contains(&decay_value(1000, 32)));
        assert!((248..=250).contains(&decay_value(1000, 64)));
        assert_eq!(decay_value(u64::MAX, 64 * 32), 0);
        // After 16 periods, the factor is 2^(-1/2), which is 0.7071.
        assert!((7070..=7071).contains(&decay_value(10_000, 16)));
    }

    #[test]
    fn a_busy_cpu_is_full_and_an_idle_one_empty() {
        let mut load = Load::new();
        load.note(PERIOD_NS * 32, true);
        assert!((511..=513).contains(&load.average()), "{}", load.average());
        load.note(PERIOD_NS * 1000, true);
        assert_eq!(load.average(), FULL);
        load.note(PERIOD_NS * 32, false);
        assert!((511..=513).contains(&load.average()), "{}", load.average());
        load.note(PERIOD_NS * 1000, false);
        assert_eq!(load.average(), 0);
    }

    #[test]
    fn a_quarter_of_the_time_is_a_quarter() {
        let mut load = Load::new();
        for _ in 0..4000 {
            load.note(PERIOD_NS / 8, true);
            load.note(PERIOD_NS * 3 / 8, false);
        }
        assert!((254..=258).contains(&load.average()), "{}", load.average());
    }

    proptest! {
        #[test]
        fn it_stays_in_range(notes in proptest::collection::vec((0u64..1 << 40, any::<bool>()), 0..60)) {
            let mut load = Load::new();
            for (nanoseconds, running) in notes {
                load.note(nanoseconds, running);
                prop_assert!(load.average() <= FULL);
            }
        }
    }
}
