// SPDX-License-Identifier: MIT OR Apache-2.0
//! `menu`: predicts how long the stay will be, and takes the state that pays in
//! it.
//!
//! The default governor of Linux, as it is since 6.15 (no multipliers for load and
//! waiting I/O any more) with the polling rule of 6.19. Two predictions, and the
//! shorter one holds:
//!
//! - the time to the next timer, times a factor learnt from how much of that time
//!   was really slept; one factor for each power of ten from 10 us to 100 ms;
//! - the [typical interval](typical), if the last eight stays have one.
//!
//! If the typical interval is short, the timer isn't asked for at all.
//!
//! Sources: Linux, `drivers/cpuidle/governors/menu.c`; the constants are its.
//! Where our sources are silent: factors begin at 1 and intervals at 0, and what was
//! chosen without asking for the timer is charged to the last factor, all as there.

use crate::tick::{SAFE_TICKS, SHORT_NS, next_event};
use crate::{Choice, FOREVER, Governor, Moment, Outcome, Table, Wake};

mod typical;

/// A factor of 1 is `RESOLUTION * DECAY`.
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
/// Timers of the buckets' upper ends, ns; the last bucket has none.
const BUCKET_ENDS_NS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const BUCKETS: usize = BUCKET_ENDS_NS.len() + 1;
/// From here on a stay is as good as its timer, ns.
const MAX_INTERESTING_NS: u64 = 50_000_000;
/// What a stay is taken for that only the tick ended, ns.
const UNENDED_NS: u64 = MAX_INTERESTING_NS / 10 * 9;

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Menu {
    factors: [u64; BUCKETS],
    intervals: typical::Intervals,
    /// Time to the timer at the last choice, ns; [`FOREVER`] if not asked for.
    next_timer_ns: u64,
    bucket: usize,
}

impl Default for Menu {
    fn default() -> Self {
        Self::new()
    }
}

impl Menu {
    /// One that has learnt nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            factors: [RESOLUTION * DECAY; BUCKETS],
            intervals: typical::Intervals::new(),
            next_timer_ns: FOREVER,
            bucket: BUCKETS - 1,
        }
    }

    /// How long the stay will be and when something is due, ns.
    fn predict(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> (u64, u64) {
        let typical_ns = self.intervals.typical_ns();
        if typical_ns <= SHORT_NS && !moment.tick_stopped {
            self.next_timer_ns = FOREVER;
            self.bucket = BUCKETS - 1;
            return (typical_ns, states.tick_ns() / 2);
        }
        let timer_ns = next_timer();
        self.next_timer_ns = timer_ns;
        self.bucket = bucket(timer_ns);
        let corrected_ns = scaled(timer_ns, self.factors[self.bucket % BUCKETS]);
        let predicted_ns = typical_ns.min(corrected_ns);
        // Without a tick nothing but the timer corrects a wrong prediction.
        let far = timer_ns > states.tick_ns().saturating_mul(SAFE_TICKS);
        let lost = moment.tick_stopped && far && predicted_ns < states.tick_ns();
        let predicted_ns = if lost { timer_ns } else { predicted_ns };
        (predicted_ns, next_event(moment, timer_ns))
    }

    /// What is to be learnt from a stay, ns.
    fn measured(&self, states: &Table, outcome: &Outcome) -> u64 {
        let exit_ns = states.at(outcome.state).exit_latency_ns;
        let measured_ns = match outcome.wake {
            Wake::Tick if self.next_timer_ns > states.tick_ns() => UNENDED_NS,
            Wake::PollTimeout => self.next_timer_ns,
            _ if outcome.residency_ns / 2 > exit_ns => outcome.residency_ns - exit_ns,
            _ => outcome.residency_ns / 2,
        };
        measured_ns.min(self.next_timer_ns)
    }
}

/// The bucket of a timer.
fn bucket(timer_ns: u64) -> usize {
    BUCKET_ENDS_NS
        .iter()
        .filter(|&&end| timer_ns >= end)
        .count()
}

/// `time_ns * factor`, where a factor of 1 is `RESOLUTION * DECAY`; rounded.
const fn scaled(time_ns: u64, factor: u64) -> u64 {
    let one = (RESOLUTION * DECAY) as u128;
    let scaled = (time_ns as u128 * factor as u128 + one / 2) / one;
    if scaled > FOREVER as u128 {
        FOREVER
    } else {
        scaled as u64
    }
}

/// The state for a stay of `predicted_ns`, and the stay that it stands for, ns.
fn state_for(
    states: &Table,
    moment: &Moment,
    predicted_ns: u64,
    next_timer_ns: u64,
) -> (usize, u64) {
    let limit_ns = moment.latency_limit_ns;
    let state = states.deepest(predicted_ns, limit_ns);
    let Some(next) = states
        .deeper(state)
        .filter(|&next| states.allows(next, limit_ns))
    else {
        return (state, predicted_ns);
    };
    let deeper = states.at(next);
    if states.at(state).polls()
        && deeper.target_residency_ns < SHORT_NS
        && deeper.target_residency_ns <= next_timer_ns
        && deeper.exit_latency_ns <= predicted_ns
    {
        // Polling is worth it only if a halt would take long to pay.
        return (next, deeper.target_residency_ns);
    }
    let tick_ns = states.tick_ns();
    let residency_ns = states.at(state).target_residency_ns;
    match (predicted_ns < tick_ns, moment.tick_stopped) {
        (true, _) => (state, predicted_ns),
        // Longer than a tick but too short for the next state: with the tick on,
        // there will be another choice soon.
        (false, false) => (state, residency_ns),
        // Without it, better deep than stuck.
        (false, true) if residency_ns < tick_ns && deeper.target_residency_ns <= next_timer_ns => {
            (next, predicted_ns)
        }
        (false, true) => (state, predicted_ns),
    }
}

impl Governor for Menu {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        let (predicted_ns, event_ns) = self.predict(states, moment, next_timer);
        if moment.latency_limit_ns == 0 {
            let state = states.shallowest();
            return Choice::of(states, state, !states.at(state).polls());
        }
        let timer_ns = self.next_timer_ns;
        let (state, stay_ns) = state_for(states, moment, predicted_ns, timer_ns);
        Choice::with_tick(states, moment, state, stay_ns, event_ns)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        let measured_ns = self.measured(states, outcome);
        let timer_ns = self.next_timer_ns;
        // A stay from 50 ms on is as good as its timer, so there is no overflow.
        let part = match (RESOLUTION * measured_ns.min(MAX_INTERESTING_NS)).checked_div(timer_ns) {
            Some(part) if measured_ns < MAX_INTERESTING_NS => part,
            _ => RESOLUTION,
        };
        let factor = &mut self.factors[self.bucket % BUCKETS];
        *factor = (*factor - *factor / DECAY + part).max(1);
        self.intervals.add(measured_ns);
    }
}

#[cfg(test)]
mod tests;
