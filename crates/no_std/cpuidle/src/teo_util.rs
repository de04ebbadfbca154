// SPDX-License-Identifier: MIT OR Apache-2.0
//! `teo-6.2`, `teo-util-v6` and `teo-util-6.5`: the timer-events-oriented governor of
//! 2023, without and with K. Puchalski's util-awareness.
//!
//! "cpuidle: teo: Introduce util-awareness" (version 6, January 2023) came with Linux
//! 6.3: a CPU whose run queue was utilised above 1/64 of its capacity is likely to be woken
//! soon, so it takes the next shallower state that does not poll. If there are two
//! states, it takes the shallowest that does not poll. The posted version does not change
//! the expected stay, so it may stop the tick for a shallow state; 6.5 corrected that in
//! July 2023. Linux 6.11 removed the util-awareness because its bias is always towards
//! shallow states, and a utilisation threshold says nothing about the length of the
//! stay. With only poll and WFI, the governor never polls at all. The patch was measured against
//! `teo-6.2`.
//!
//! Besides the bins of [`Teo`](crate::Teo), this version keeps the bins of the last [`RECENT`]
//! wake-ups: if more than half of them were intercepts, that is as good a reason for a shallower
//! state as more than half of the decayed sums. The bins' increments do not depend on how close the
//! timer was, the governor always asks for the timer, and a wake-up by the tick counts as one by
//! the timer if the timer was later.
//!
//! The sources contradict each other on the meaning of "shallower" ("one state", "to C0"). This
//! module follows the code: the closest shallower state that does not poll. With two states, the
//! code ignores the latency limit, and so does this module. In the code, a hit in the first bin
//! precedes the very first choice; nothing depends on that hit, so it is left out here.

use crate::teo::{PULSE, bins_of, deepest_within, stay_without_exit};
use crate::tick::{KTIME_MAX, ns_to_next_event, ns_until_timer};
use crate::{Choice, FOREVER, Governor, MAX_STATES, Moment, Outcome, Table, Wake};

/// A metric loses 1/2^3 of its value at each event.
const DECAY_SHIFT: u32 = 3;
/// Wake-ups that are remembered one by one (`NR_RECENT`).
const RECENT: usize = 9;
/// Capacity of a CPU, as in [`Moment::utilisation`].
const CAPACITY: u32 = 1024;
/// The share of its capacity above which a CPU counts as utilised: 1/64.
const UTIL_THRESHOLD: u32 = CAPACITY >> 6;

/// Treatment of a utilised CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Util {
    /// The utilisation is ignored: Linux 6.2.
    Ignored,
    /// A utilised CPU gets a shallower state, but its expected stay does not change: version 6 of the patch.
    Posted,
    /// A utilised CPU gets a shallower state, and that state's expected stay: Linux 6.5.
    Corrected,
}

/// Metrics of the stays that reach one state's target residency but not the next state's.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    hits: u32,
    intercepts: u32,
    /// Intercepts among the last [`RECENT`] wake-ups.
    recent: u32,
}

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct TeoUtil {
    util: Util,
    bins: [Bin; MAX_STATES],
    /// Sum of the bins' hits and intercepts.
    total: u32,
    /// For each of the last wake-ups, the bin of the intercept; `None` for a hit.
    recent: [Option<u8>; RECENT],
    /// Index of the oldest entry of `recent`.
    oldest: usize,
    /// Time to the timer at the last choice, ns.
    sleep_length_ns: u64,
}

/// Sums that argue for a state shallower than the candidate.
#[derive(Clone, Copy)]
struct Early {
    intercepts: Option<u32>,
    recent: Option<u32>,
}

impl Early {
    /// Whether the argument `intercepts` is more than half of the field `intercepts`, and `recent`
    /// more than half of the field `recent`. A field that is `None` does not count.
    fn is_outweighed_by(self, intercepts: u32, recent: u32) -> bool {
        self.intercepts.is_none_or(|all| 2 * intercepts > all)
            && self.recent.is_none_or(|all| 2 * recent > all)
    }
}

impl TeoUtil {
    /// Returns a governor that has learnt nothing.
    #[must_use]
    pub const fn new(util: Util) -> Self {
        Self {
            util,
            bins: [Bin {
                hits: 0,
                intercepts: 0,
                recent: 0,
            }; MAX_STATES],
            total: 0,
            recent: [None; RECENT],
            oldest: 0,
            sleep_length_ns: 0,
        }
    }

    /// Returns the early wake-ups if they were frequent enough to distrust `candidate`.
    fn early_wakeups(&self, candidate: usize) -> Option<Early> {
        let (mut intercepts, mut hits, mut recent) = (0, 0, 0);
        for bin in self.bins.iter().take(candidate) {
            intercepts += bin.intercepts;
            hits += bin.hits;
            recent += bin.recent;
        }
        let by_sums = 2 * intercepts > self.total.saturating_sub(hits);
        let by_recent = recent > RECENT as u32 / 2;
        (by_sums || by_recent).then_some(Early {
            intercepts: by_sums.then_some(intercepts),
            recent: by_recent.then_some(recent),
        })
    }

    /// Returns a shallower state and the stay to expect in it, in place of `candidate` and
    /// `duration_ns`.
    fn shallower_state(
        &self,
        states: &Table,
        moment: &Moment,
        early: Early,
        candidate: usize,
        duration_ns: u64,
    ) -> (usize, u64) {
        let mut suitable = (candidate, duration_ns);
        let (mut intercepts, mut recent) = (0, 0);
        for index in (0..candidate).rev() {
            let bin = &self.bins[index % MAX_STATES];
            intercepts += bin.intercepts;
            recent += bin.recent;
            let span = (index, middle_of_bin(states, index));
            let (enabled, time_ok) = (states.at(index).enabled, may_enter(states, moment, span.1));
            if early.is_outweighed_by(intercepts, recent) {
                return if enabled && time_ok { span } else { suitable };
            }
            if enabled && time_ok {
                suitable = span;
            } else if enabled && suitable.0 == candidate {
                // This state is too shallow, and so are the rest.
                break;
            }
        }
        (candidate, duration_ns)
    }

    fn remember_bin(&mut self, intercepted: Option<u8>) {
        let slot = &mut self.recent[self.oldest % RECENT];
        if let Some(bin) = core::mem::replace(slot, intercepted) {
            self.bins[usize::from(bin) % MAX_STATES].recent -= 1;
        }
        if let Some(bin) = intercepted {
            self.bins[usize::from(bin) % MAX_STATES].recent += 1;
        }
        self.oldest = (self.oldest + 1) % RECENT;
    }
}

/// Returns the expected length of a stay in the bin of `index`, in ns. Past the last state, Linux
/// reads a residency of 0, and so does this function: the result is then half the residency of the last
/// state.
fn middle_of_bin(states: &Table, index: usize) -> u64 {
    let residency = |index: usize| {
        let state = states.states().get(index);
        state.map_or(0, |state| state.target_residency_ns)
    };
    residency(index).midpoint(residency(index + 1))
}

/// Whether a CPU may enter a state in which it expects to stay `span_ns`: without a tick,
/// a stay in a state that is too shallow might never end.
const fn may_enter(states: &Table, moment: &Moment, span_ns: u64) -> bool {
    !moment.tick_stopped || span_ns >= states.tick_ns()
}

/// Returns the closest shallower state that does not poll and pays off in `duration_ns`; if there is none,
/// the shallowest that does not poll.
fn shallower_halt(states: &Table, state: usize, duration_ns: u64) -> usize {
    let halts = |&index: &usize| states.at(index).enabled && !states.at(index).polls();
    let mut found = state;
    for index in (0..state).rev().filter(halts) {
        found = index;
        if states.at(index).target_residency_ns <= duration_ns {
            break;
        }
    }
    found
}

impl Governor for TeoUtil {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        let sleep_ns = ns_until_timer(moment, next_timer);
        self.sleep_length_ns = sleep_ns;
        let event_ns = ns_to_next_event(moment, sleep_ns);
        let finish =
            |state, duration_ns| Choice::with_tick(states, moment, state, duration_ns, event_ns);
        if states.at(0).enabled && sleep_ns < states.at(1).target_residency_ns {
            return finish(0, sleep_ns);
        }
        let utilised = self.util != Util::Ignored && moment.utilisation > UTIL_THRESHOLD;
        let halts = |&index: &usize| states.at(index).enabled && !states.at(index).polls();
        if utilised && let (2, Some(halt)) = (states.count(), (0..2).find(halts)) {
            let span_ns = middle_of_bin(states, 0);
            return match self.util {
                Util::Corrected if may_enter(states, moment, span_ns) => finish(halt, span_ns),
                Util::Corrected => finish(states.deepest(FOREVER, FOREVER), span_ns),
                Util::Ignored | Util::Posted => finish(halt, sleep_ns),
            };
        }
        let first = states.deepest(sleep_ns, FOREVER);
        let mut state = first;
        let mut duration_ns = sleep_ns;
        if state == states.shallowest() {
            return finish(state, sleep_ns);
        }
        if let Some(early) = self.early_wakeups(state) {
            (state, duration_ns) = self.shallower_state(states, moment, early, state, duration_ns);
        }
        let limit_ns = moment.latency_limit_ns;
        state = state.min(deepest_within(states, first + 1, limit_ns));
        if utilised {
            let shallower = shallower_halt(states, state, duration_ns);
            let span_ns = middle_of_bin(states, shallower);
            match self.util {
                Util::Corrected if may_enter(states, moment, span_ns) => {
                    (state, duration_ns) = (shallower, span_ns);
                }
                Util::Corrected => {}
                Util::Ignored | Util::Posted => state = shallower,
            }
        }
        finish(state, duration_ns)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        let beyond_tick = self.sleep_length_ns > states.tick_ns();
        let at_timer = match outcome.wake {
            Wake::PollTimeout | Wake::Timer => true,
            Wake::Tick if beyond_tick => true,
            _ => outcome.residency_ns >= self.sleep_length_ns,
        };
        let measured_ns = if at_timer {
            KTIME_MAX
        } else {
            stay_without_exit(
                outcome.residency_ns,
                states.at(outcome.state).exit_latency_ns,
            )
        };
        self.total = PULSE;
        for bin in self.bins.iter_mut().take(states.count()) {
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total += bin.hits + bin.intercepts;
        }
        let (timer, stay) = bins_of(states, self.sleep_length_ns, measured_ns);
        if timer == stay {
            self.bins[timer % MAX_STATES].hits += PULSE;
            self.remember_bin(None);
        } else {
            self.bins[stay % MAX_STATES].intercepts += PULSE;
            self.remember_bin(Some(stay as u8));
        }
    }
}
