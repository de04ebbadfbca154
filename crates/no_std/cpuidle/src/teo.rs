// SPDX-License-Identifier: MIT OR Apache-2.0
//! `teo`: the timer-events-oriented governor of Linux 7.1.
//!
//! R. Wysocki's governor (2018) starts from a certainty, the next timer, and asks how often the CPU
//! was woken before it. Each state has a bin for stays from its target residency up to the next
//! state's. A wake-up in the timer's bin, less than half the exit latency away from the timer, is a
//! *hit* in that bin; any other is an *intercept* in the bin of the stay. Hits and intercepts decay by
//! an eighth with each wake-up and grow by [`PULSE`].
//!
//! **Choosing.** The candidate is the deepest state. If the intercepts in shallower bins are more
//! than half of all events other than hits in those bins, the candidate becomes the deepest state
//! that would have paid off in more than half of those intercepts, but no deeper than the bin with
//! the most intercepts. Then the latency limit applies. Only then, unless short stays dominate
//! anyway, does the governor ask for the next timer, which is the expensive part.
//!
//! **The tick.** A CPU that expects to wake within the tick keeps the tick, as a safety net for a wrong
//! choice. A wake-up by the tick says nothing about other wake-ups. Such a wake-up counts as a hit
//! in the deepest bin if the tick is the main waker, or as a hit in the timer's bin if intercepts
//! within a tick are rare. If such intercepts are frequent, two thirds or more, the tick stays on. If the tick
//! is already stopped, a shallow state is safe only if a timer ends it within [`SAFE_TICKS`].
//!
//! Source: Linux 7.1, `drivers/cpuidle/governors/teo.c`, with all its constants. As in Linux, the
//! governor chooses state 0, enabled or not, if the latency limit allows no state
//! ([`Selected`](crate::Selected) replaces disabled states), and a fictitious stay precedes the very
//! first choice.

use crate::tick::{KTIME_MAX, SAFE_TICKS, SHORT_NS, ns_to_next_event, ns_until_timer};
use crate::{Choice, FOREVER, Governor, MAX_STATES, Moment, Outcome, Table, Wake};

/// Growth of a metric per event.
pub(crate) const PULSE: u32 = 1024;
/// A metric loses 1/2^3 of its value at each event.
const DECAY_SHIFT: u32 = 3;
/// The smallest latency limit that does not count as 0.
const LATENCY_THRESHOLD_NS: u64 = SHORT_NS / 2;

/// Metrics of the stays that reach one state's target residency but not the next state's.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    hits: u32,
    intercepts: u32,
}

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Teo {
    bins: [Bin; MAX_STATES],
    /// Sum of the bins' hits and intercepts.
    total: u32,
    /// Intercepts within a tick.
    tick_intercepts: u32,
    /// Wake-ups after less than [`SHORT_NS`].
    short_idles: u32,
    /// Wake-ups by the tick.
    total_tick: u32,
    /// Time to the timer at the last choice, in ns; [`KTIME_MAX`] if the governor did not ask.
    sleep_length_ns: u64,
    /// Whether nothing was chosen yet.
    fresh: bool,
}

impl Default for Teo {
    fn default() -> Self {
        Self::new()
    }
}

impl Teo {
    /// Returns a governor that has learnt nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bins: [Bin {
                hits: 0,
                intercepts: 0,
            }; MAX_STATES],
            total: 0,
            tick_intercepts: 0,
            short_idles: 0,
            total_tick: 0,
            sleep_length_ns: 0,
            fresh: true,
        }
    }

    fn decay_bins(&mut self, states: &Table) {
        self.total = 0;
        for bin in self.bins.iter_mut().take(states.count()) {
            decay_metric(&mut bin.hits);
            decay_metric(&mut bin.intercepts);
            self.total += bin.hits + bin.intercepts;
        }
        decay_metric(&mut self.tick_intercepts);
        decay_metric(&mut self.short_idles);
        decay_metric(&mut self.total_tick);
    }

    /// Returns the length that the governor learns for a stay, in ns; also counts short stays.
    fn stay_to_learn(&mut self, outcome: &Outcome, exit_latency_ns: u64) -> u64 {
        if outcome.wake == Wake::PollTimeout {
            return KTIME_MAX;
        }
        let measured_ns = stay_without_exit(outcome.residency_ns, exit_latency_ns);
        if outcome.residency_ns < exit_latency_ns || measured_ns < SHORT_NS {
            self.short_idles += PULSE;
        }
        measured_ns
    }

    /// Returns the bin in which a wake-up by the tick counts as a hit, if any; `timer` is the timer's bin.
    fn bin_of_tick(&mut self, states: &Table, wake: Wake, timer: usize) -> Option<usize> {
        if wake != Wake::Tick {
            return None;
        }
        self.total_tick += PULSE;
        if 3 * self.total_tick > 2 * (self.total + PULSE) {
            Some(states.count() - 1)
        } else if 3 * self.tick_intercepts < 2 * self.total {
            Some(timer)
        } else {
            None
        }
    }

    /// Returns the deepest state that is worth entering according to the wake-ups so far.
    fn state_by_experience(&self, states: &Table) -> usize {
        let deepest = states.deepest(FOREVER, FOREVER);
        let (mut intercepts, mut hits) = (0, 0);
        for bin in self.bins.iter().take(deepest) {
            intercepts += bin.intercepts;
            hits += bin.hits;
        }
        if 2 * intercepts <= self.total.saturating_sub(hits) {
            return deepest;
        }
        let most = self.most_intercepted_bin(states);
        let mut above = 0;
        for index in (states.shallowest()..deepest).rev() {
            above += self.bins[index % MAX_STATES].intercepts;
            if 2 * above > intercepts && index <= most && states.at(index).enabled {
                return index;
            }
        }
        states.shallowest()
    }

    /// Returns the bin with the most intercepts, except the last state's bin; of several such bins, the
    /// deepest.
    fn most_intercepted_bin(&self, states: &Table) -> usize {
        let (mut most, mut intercepts) = (0, 0);
        let bins = self.bins.iter().take(states.count() - 1);
        for (index, bin) in bins.enumerate() {
            if bin.intercepts >= intercepts {
                (most, intercepts) = (index, bin.intercepts);
            }
        }
        most
    }

    /// Whether the time of the next timer doesn't matter: the stay will mostly be short, or the
    /// state has to be shallow in any case.
    fn timer_does_not_matter(&self, states: &Table, moment: &Moment, state: usize) -> bool {
        let shallow = state == 0 || states.at(state).target_residency_ns < SHORT_NS;
        let short = 2 * self.short_idles >= self.total;
        let strict = moment.latency_limit_ns < LATENCY_THRESHOLD_NS;
        !moment.tick_stopped && shallow && (short || strict)
    }
}

/// Reduces the metric by an eighth, or to 0 if it is too small for that.
const fn decay_metric(metric: &mut u32) {
    let part = *metric >> DECAY_SHIFT;
    *metric = if part == 0 { 0 } else { *metric - part };
}

/// Returns the length of the stay without the time to leave the state, estimated as half the exit latency,
/// in ns.
pub(crate) const fn stay_without_exit(residency_ns: u64, exit_latency_ns: u64) -> u64 {
    if residency_ns >= exit_latency_ns {
        residency_ns - exit_latency_ns / 2
    } else {
        residency_ns / 2
    }
}

/// Returns the bins of the timer and of the stay; the stay's bin can't be deeper than the timer's.
pub(crate) fn bins_of(states: &Table, sleep_length_ns: u64, measured_ns: u64) -> (usize, usize) {
    let bin = |time_ns| {
        let reached = |state: &&crate::State| state.target_residency_ns <= time_ns;
        let reached = states.states().iter().take_while(reached).count();
        reached.saturating_sub(1)
    };
    (bin(sleep_length_ns), bin(measured_ns.min(sleep_length_ns)))
}

/// Returns the deepest state before `end`, other than the first, that respects the latency limit; if there
/// is none, the first.
pub(crate) fn deepest_within(states: &Table, end: usize, limit_ns: u64) -> usize {
    let keeps = |&index: &usize| {
        let state = states.at(index);
        state.enabled && state.exit_latency_ns <= limit_ns
    };
    (1..end).rev().find(keeps).unwrap_or(0)
}

impl Governor for Teo {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        if self.fresh {
            // Learns from a fictitious stay in state 0 whose timer was due at once.
            self.fresh = false;
            let none = Outcome {
                state: 0,
                residency_ns: 0,
                wake: Wake::Interrupt,
            };
            self.reflect(states, &none);
        }
        self.sleep_length_ns = KTIME_MAX;
        let only = states.shallowest();
        if states.deeper(only).is_none() {
            // There is no choice, so no need for the timer; the tick stays on if the state is
            // shallow.
            let stay_ns = states.at(only).target_residency_ns;
            return Choice::with_tick(states, moment, only, stay_ns, states.tick_ns() / 2);
        }
        let bound = deepest_within(states, states.count(), moment.latency_limit_ns);
        let state = self.state_by_experience(states).min(bound);
        if self.timer_does_not_matter(states, moment, state) {
            return Choice::keep_tick(states, state);
        }
        let sleep_ns = ns_until_timer(moment, next_timer);
        self.sleep_length_ns = sleep_ns;
        let tick_ns = states.tick_ns();
        let within_tick = |state| states.at(state).target_residency_ns < tick_ns;
        if moment.tick_stopped
            && sleep_ns > tick_ns.saturating_mul(SAFE_TICKS)
            && within_tick(state)
        {
            let deepest = states.deepest(sleep_ns, FOREVER).min(bound);
            return Choice::with_poll_limit(states, state.max(deepest), true);
        }
        if state == 0 {
            return Choice::keep_tick(states, state);
        }
        let state = state.min(states.deepest(sleep_ns, FOREVER));
        let intercepted = 3 * self.tick_intercepts >= 2 * self.total;
        let duration_ns = if within_tick(state) && intercepted {
            tick_ns / 2
        } else {
            sleep_ns
        };
        let event_ns = ns_to_next_event(moment, sleep_ns);
        Choice::with_tick(states, moment, state, duration_ns, event_ns)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        self.decay_bins(states);
        let exit_latency_ns = states.at(outcome.state).exit_latency_ns;
        let measured_ns = self.stay_to_learn(outcome, exit_latency_ns);
        let (timer, stay) = bins_of(states, self.sleep_length_ns, measured_ns);
        let near = match self.sleep_length_ns.checked_sub(measured_ns) {
            Some(missed_ns) => missed_ns < exit_latency_ns / 2,
            None => true,
        };
        let on_time = timer == stay && near;
        let hit = self.bin_of_tick(states, outcome.wake, timer);
        if let Some(bin) = hit.or(on_time.then_some(timer)) {
            self.bins[bin % MAX_STATES].hits += PULSE;
        } else {
            self.bins[stay % MAX_STATES].intercepts += PULSE;
            if measured_ns <= states.tick_ns() {
                self.tick_intercepts += PULSE;
            }
        }
        self.total += PULSE;
    }
}
