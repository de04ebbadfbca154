// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether to stop the tick: the last step of `menu` and of every `teo`.

use crate::{Choice, FOREVER, Moment, Table};

/// For residencies and latencies below this, knowing the next timer isn't worth the cost of finding
/// it (`RESIDENCY_THRESHOLD_NS` of Linux).
pub const SHORT_NS: u64 = 15_000;

/// A timer that is within two ticks ends a stay soon enough even if the tick is stopped
/// (`SAFE_TIMER_RANGE_NS` of Linux).
pub const SAFE_TICKS: u64 = 2;

impl Choice {
    /// Chooses `state` and keeps the tick.
    pub(crate) const fn keep_tick(states: &Table, state: usize) -> Self {
        Self::with_poll_limit(states, state, false)
    }

    /// Chooses `state` for a stay that is expected to last `duration_ns`. Stops the tick if it would cut
    /// that stay short, but never for a poll. If the tick continues, a shallower state replaces one
    /// that does not pay off before `next_event_ns`, the time to the tick or a timer.
    pub(crate) fn with_tick(
        states: &Table,
        moment: &Moment,
        state: usize,
        duration_ns: u64,
        next_event_ns: u64,
    ) -> Self {
        let cut_short = duration_ns >= states.tick_ns();
        if moment.tick_stopped || (cut_short && !states.at(state).polls()) {
            return Self::with_poll_limit(states, state, true);
        }
        // Shallower states are left sooner, so the latency limit does not matter.
        let pays = states.deepest(next_event_ns, FOREVER);
        Self::keep_tick(states, state.min(pays))
    }
}

/// Linux's value for a time that never comes (`KTIME_MAX`), in ns.
pub const KTIME_MAX: u64 = i64::MAX as u64;

/// Returns the result of `next_timer` in the form that Linux's governors get: their clock ends at
/// [`KTIME_MAX`], and a missing timer counts as due then.
pub fn ns_until_timer(moment: &Moment, next_timer: impl FnOnce() -> u64) -> u64 {
    next_timer().min(KTIME_MAX.saturating_sub(moment.now_ns))
}

/// Returns the time to the timer or the tick, whichever comes first, in ns.
pub const fn ns_to_next_event(moment: &Moment, next_timer_ns: u64) -> u64 {
    if moment.tick_stopped || next_timer_ns < moment.next_tick_ns {
        next_timer_ns
    } else {
        moment.next_tick_ns
    }
}
