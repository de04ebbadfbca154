// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates random traces.
//!
//! The random number generator is S. Vigna's splitmix64 (after Steele, Lea and Flood, "Fast splittable pseudorandom
//! number generators", OOPSLA 2014). The generator's ten lines are part of this module, so that a seed always gives the
//! same trace. Random number generator crates do not promise this across their versions.

use clap::ValueEnum;
use cpuidle::{FOREVER, Wake};

use super::trace::{Interval, Trace};

/// Pattern of the wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Independent interrupts, and timers that are four times as rare.
    Exponential,
    /// Only a timer.
    Periodic,
    /// Bursts of about 16 requests, each followed by a long pause. In a burst, the mean interval is a twentieth of
    /// `mean_us`.
    Bursty,
    /// Each interval follows one of the other patterns, drawn at random.
    Mixed,
    /// Interrupts after intervals of a Pareto distribution: mostly short, sometimes very long (shape 1.5).
    Pareto,
}

/// Parameters of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Generated {
    /// Pattern of the trace's wake-ups.
    pub kind: Pattern,
    /// Seed of the random numbers.
    pub seed: u64,
    pub count: u64,
    /// Mean length of the trace's intervals, in us.
    pub mean_us: u64,
}

/// Longest interval, as a multiple of the mean.
const LONGEST: f64 = 1000.0;
/// Mean time for which the CPU runs before an interval, as a fraction of the mean interval.
const BUSY: f64 = 0.05;
/// Mean number of requests in a burst. `BURST_GAP` is the mean time between these requests, as a fraction of the mean
/// interval.
const BURST: f64 = 16.0;
const BURST_GAP: f64 = 0.05;

impl Generated {
    fn pattern_word(&self) -> String {
        let value = self.kind.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Generates the trace.
    pub fn make_trace(&self) -> Trace {
        let mut chance = Chance(self.seed);
        let mean_ns = self.mean_us as f64 * 1000.0;
        let intervals = (0..self.count)
            .map(|_| chance.interval(self.kind, mean_ns))
            .collect();
        Trace {
            source: format!(
                "{}, mean {} us, seed {}",
                self.pattern_word(),
                self.mean_us,
                self.seed
            ),
            intervals,
        }
    }
}

/// The state of the random number generator.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number above 0 and up to 1.
    fn random_unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns an exponentially distributed random number with mean 1.
    fn exponential(&mut self) -> f64 {
        -self.random_unit().ln()
    }

    fn interval(&mut self, kind: Pattern, mean_ns: f64) -> Interval {
        let ns = |means: f64| ((means.clamp(0.0, LONGEST) * mean_ns) as u64).max(1);
        let busy = BUSY * self.exponential();
        let (event, timer, wake) = match kind {
            Pattern::Exponential => (
                self.exponential() / 0.8,
                Some(4.0 * self.exponential() / 0.8),
                Wake::Interrupt,
            ),
            Pattern::Periodic => (f64::INFINITY, Some(1.0 + BUSY - busy.min(1.0)), Wake::Timer),
            Pattern::Bursty => {
                let pause = BURST - (BURST - 1.0) * BURST_GAP;
                let ends = self.random_unit() <= 1.0 / BURST;
                let length = if ends { pause } else { BURST_GAP };
                (length * self.exponential(), None, Wake::Request)
            }
            Pattern::Pareto => {
                let timer = 10.0 * self.exponential();
                (
                    self.random_unit().powf(-1.0 / 1.5) / 3.0,
                    Some(timer),
                    Wake::Interrupt,
                )
            }
            Pattern::Mixed => {
                let kinds = [
                    Pattern::Exponential,
                    Pattern::Periodic,
                    Pattern::Bursty,
                    Pattern::Pareto,
                ];
                let kind = kinds[(self.next() >> 62) as usize];
                return self.interval(kind, mean_ns);
            }
        };
        let timer_ns = timer.map_or(FOREVER, ns);
        let event_ns = ns(event);
        Interval {
            duration_ns: event_ns.min(timer_ns),
            next_timer_ns: timer_ns,
            wake: if timer_ns <= event_ns {
                Wake::Timer
            } else {
                wake
            },
            busy_ns: ns(busy),
            utilisation: None,
            io: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(kind: Pattern, seed: u64) -> Trace {
        let generated = Generated {
            kind,
            seed,
            count: 20_000,
            mean_us: 500,
        };
        generated.make_trace()
    }

    /// The first numbers for seed 0, as published with the algorithm.
    #[test]
    fn chance_is_splitmix() {
        let mut chance = Chance(0);
        let numbers = [chance.next(), chance.next()];
        assert_eq!(numbers, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    /// The mean is within 10 % of the parameter, or within 30 % for the pattern with a heavy tail.
    #[test]
    fn intervals_have_their_mean() {
        for &kind in Pattern::value_variants() {
            let trace = trace(kind, 7);
            let mean_us = trace.idle_ns() / 20_000 / 1000;
            let off = if kind == Pattern::Pareto { 150 } else { 50 };
            assert!(mean_us.abs_diff(500) < off, "{kind:?}: {mean_us}");
        }
    }

    #[test]
    fn a_seed_is_a_trace() {
        assert_eq!(trace(Pattern::Mixed, 1), trace(Pattern::Mixed, 1));
        assert_ne!(
            trace(Pattern::Mixed, 1).intervals,
            trace(Pattern::Mixed, 2).intervals
        );
    }

    #[test]
    fn periodic_wakes_are_timers() {
        let trace = trace(Pattern::Periodic, 1);
        assert!(
            trace
                .intervals
                .iter()
                .all(|interval| interval.wake == Wake::Timer
                    && interval.duration_ns == interval.next_timer_ns)
        );
    }
}
