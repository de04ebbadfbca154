// SPDX-License-Identifier: MIT OR Apache-2.0
//! `menu`: predicts the length of the stay, and chooses the state that pays off in it.
//!
//! `menu` is Linux's default governor. It uses the shorter of two predictions:
//!
//! - the time to the next timer, times a factor: the learnt fraction of that time for which the CPU
//!   really slept (one factor for each power of ten from 10 us to 100 ms);
//! - the [typical interval](typical), if the last eight stays have one.
//!
//! The governor has changed much over the years, so this module has the versions of [three
//! releases](Release).
//!
//! Sources: Linux, `drivers/cpuidle/governors/menu.c`, with its constants. As in Linux, factors
//! begin at 1 and intervals at 0, and a choice made without asking for the timer updates the
//! last factor.

use crate::tick::{KTIME_MAX, SAFE_TICKS, SHORT_NS, ns_to_next_event, ns_until_timer};
use crate::{Choice, FOREVER, Governor, Moment, Outcome, Table, Wake};

mod search;
mod typical;

/// A factor of 1 is `RESOLUTION * DECAY`.
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
/// Upper ends of the buckets as times to the timer, in ns; the last bucket has no upper end.
const BUCKET_ENDS_NS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const BUCKETS: usize = BUCKET_ENDS_NS.len() + 1;
/// Shortest stay, in ns, that counts as if it had lasted until its timer.
const MAX_INTERESTING_NS: u64 = 50_000_000;
/// Assumed length of a stay that only the tick ended, ns.
const UNENDED_NS: u64 = MAX_INTERESTING_NS / 10 * 9;
/// The number that each task waiting for I/O adds to the divisor of the tolerated latency.
const PER_WAITER: u64 = 10;

/// The Linux release whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Linux 6.2 (early 2023): choices made while a task waits for I/O have factors of their own, and
    /// such tasks lower the tolerated latency to a fraction of the prediction.
    V6_2,
    /// Linux 6.14 (early 2025): I/O no longer counts; a short typical interval makes asking for the
    /// timer unnecessary.
    V6_14,
    /// Linux 7.1 (2026), the current rules: outliers are dropped at both ends, the prediction does
    /// not bound the latency, and a poll gives way only to states with a short target residency.
    Now,
}

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Menu {
    release: Release,
    /// The second half is for choices made while a task waits for I/O, if the release counts such tasks.
    factors: [u32; 2 * BUCKETS],
    intervals: typical::Intervals,
    /// Time to the timer at the last choice, in ns; [`KTIME_MAX`] if the governor did not ask.
    next_timer_ns: u64,
    bucket: usize,
    /// Whether the result of the last choice is not known yet.
    open: bool,
}

/// Expected times, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Forecast {
    /// Length of the stay.
    stay_ns: u64,
    /// Time to the next timer other than the tick; [`KTIME_MAX`] if the governor did not ask.
    timer_ns: u64,
    /// Time to the next programmed event, including the tick.
    event_ns: u64,
}

impl Menu {
    /// Returns a governor that has learnt nothing.
    #[must_use]
    pub const fn new(release: Release) -> Self {
        Self {
            release,
            factors: [(RESOLUTION * DECAY) as u32; 2 * BUCKETS],
            intervals: typical::Intervals::new(),
            next_timer_ns: KTIME_MAX,
            bucket: BUCKETS - 1,
            open: true,
        }
    }

    /// Whether the kernel asks this governor even if there is only one state.
    pub(crate) const fn runs_with_one_state(&self) -> bool {
        match self.release {
            Release::V6_2 | Release::V6_14 => true,
            Release::Now => false,
        }
    }

    fn forecast(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Forecast {
        let mut forecast = match self.short_interval(moment) {
            Some(stay_ns) => {
                self.bucket = BUCKETS - 1;
                Forecast {
                    stay_ns,
                    timer_ns: KTIME_MAX,
                    event_ns: states.tick_ns() / 2,
                }
            }
            None => self.forecast_by_timer(moment, ns_until_timer(moment, next_timer)),
        };
        self.next_timer_ns = forecast.timer_ns;
        let lost = moment.tick_stopped
            && forecast.stay_ns < states.tick_ns()
            && (self.release != Release::Now || is_timer_far(forecast.timer_ns, states));
        if lost {
            forecast.stay_ns = forecast.timer_ns;
        }
        forecast
    }

    /// Predicts the stay with the factor learnt for timers that are as far away as this one.
    fn forecast_by_timer(&mut self, moment: &Moment, timer_ns: u64) -> Forecast {
        self.bucket = bucket_of(timer_ns) + self.io_waiters(moment).min(1) as usize * BUCKETS;
        let corrected_us = scaled_us(timer_ns, self.factors[self.bucket % self.factors.len()]);
        let typical_us = match self.release {
            Release::V6_2 => self.intervals.typical_below(corrected_us),
            Release::V6_14 => self.intervals.typical_of_low(),
            Release::Now => self.intervals.typical_stay(),
        };
        Forecast {
            stay_ns: typical_us.unwrap_or(corrected_us).min(corrected_us) * 1000,
            timer_ns,
            event_ns: ns_to_next_event(moment, timer_ns),
        }
    }

    /// Returns the typical interval, in ns, if it is so short that the timer does not matter.
    fn short_interval(&self, moment: &Moment) -> Option<u64> {
        let typical_us = match self.release {
            Release::V6_2 => None,
            Release::V6_14 => self.intervals.typical_of_low(),
            Release::Now if moment.tick_stopped => None,
            Release::Now => self.intervals.typical_stay(),
        };
        let typical_ns = typical_us? * 1000;
        (typical_ns <= SHORT_NS).then_some(typical_ns)
    }

    /// Returns the number of tasks that wait for I/O, or 0 if the release ignores such tasks.
    fn io_waiters(&self, moment: &Moment) -> u32 {
        match self.release {
            Release::V6_2 => moment.io_waiters,
            Release::V6_14 | Release::Now => 0,
        }
    }

    /// Returns the longest allowed time to leave the state, ns.
    fn latency_limit(&self, moment: &Moment, stay_ns: u64) -> u64 {
        let bound = match self.release {
            _ if moment.tick_stopped => FOREVER,
            Release::V6_2 => stay_ns / (1 + PER_WAITER * u64::from(self.io_waiters(moment))),
            Release::V6_14 => stay_ns,
            Release::Now => FOREVER,
        };
        bound.min(moment.latency_limit_ns)
    }

    /// Returns the length of a stay as the governor learns it, ns.
    fn stay_to_learn(&self, states: &Table, outcome: &Outcome) -> u64 {
        let exit_ns = states.at(outcome.state).exit_latency_ns;
        let measured_ns = match outcome.wake {
            Wake::Tick if self.next_timer_ns > states.tick_ns() => UNENDED_NS,
            Wake::PollTimeout => self.next_timer_ns,
            _ if outcome.residency_ns > exit_ns.saturating_mul(2) => outcome.residency_ns - exit_ns,
            _ => outcome.residency_ns / 2,
        };
        measured_ns.min(self.next_timer_ns)
    }
}

/// Whether the timer is far away: without a tick, only the timer corrects a wrong prediction.
const fn is_timer_far(timer_ns: u64, states: &Table) -> bool {
    timer_ns > states.tick_ns().saturating_mul(SAFE_TICKS)
}

/// Returns the bucket of a timer.
fn bucket_of(timer_ns: u64) -> usize {
    BUCKET_ENDS_NS
        .iter()
        .filter(|&&end| timer_ns >= end)
        .count()
}

/// Returns `time_ns * factor` in us, rounded; a factor of 1 is `RESOLUTION * DECAY`. Like
/// Linux, wraps the product and keeps 32 bits of the quotient, which hold up to 71 minutes.
const fn scaled_us(time_ns: u64, factor: u32) -> u64 {
    const ONE: u64 = RESOLUTION * DECAY * 1000;
    let scaled = time_ns.wrapping_mul(factor as u64).wrapping_add(ONE / 2) / ONE;
    scaled as u32 as u64
}

impl Governor for Menu {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        if self.open && self.release == Release::Now {
            // The last state was not entered: that counts as a stay of unknown length.
            self.intervals.add_unknown();
        }
        self.open = true;
        let forecast = self.forecast(states, moment, next_timer);
        if search::takes_first_state(states, moment, &forecast) {
            return Choice::with_poll_limit(states, 0, !states.at(0).polls());
        }
        let limit_ns = self.latency_limit(moment, forecast.stay_ns);
        let (state, stay_ns) = search::state_for(self.release, states, moment, &forecast, limit_ns);
        Choice::with_tick(states, moment, state, stay_ns, forecast.event_ns)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        let measured_ns = self.stay_to_learn(states, outcome);
        let timer_ns = self.next_timer_ns;
        // A stay of 50 ms or more counts as one that lasted until its timer: this prevents overflow.
        let part = match (RESOLUTION * measured_ns.min(MAX_INTERESTING_NS)).checked_div(timer_ns) {
            Some(part) if measured_ns < MAX_INTERESTING_NS => part,
            _ => RESOLUTION,
        };
        let bucket = self.bucket % self.factors.len();
        let factor = &mut self.factors[bucket];
        *factor = *factor - *factor / DECAY as u32 + part as u32;
        self.intervals.add_stay(measured_ns);
        self.open = false;
    }
}
