// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the state for a stay of a predicted length.

use super::{Forecast, Release};
use crate::tick::SHORT_NS;
use crate::{Moment, Table};

/// Whether the governor takes the first state at once: the limit allows no latency, or the next
/// state does not pay off before the timer or takes too long to leave. As in `menu_select()`, it
/// does not matter whether the next state is enabled.
pub fn takes_first_state(states: &Table, moment: &Moment, forecast: &Forecast) -> bool {
    let limit_ns = moment.latency_limit_ns;
    // A state beyond the table never pays off.
    let next = states.at(1);
    let needless = forecast.timer_ns < next.target_residency_ns || limit_ns < next.exit_latency_ns;
    limit_ns == 0 || states.count() == 1 || (states.at(0).enabled && needless)
}

/// Returns the state, and the stay for which it is chosen, in ns; `limit_ns` is the longest allowed
/// time to leave the state.
pub fn state_for(
    release: Release,
    states: &Table,
    moment: &Moment,
    forecast: &Forecast,
    limit_ns: u64,
) -> (usize, u64) {
    let stay_ns = forecast.stay_ns;
    let mut state = states.shallowest();
    let mut next = Some(state);
    while let Some(index) = next {
        let deeper = states.at(index);
        let in_time = deeper.exit_latency_ns <= limit_ns;
        if deeper.target_residency_ns > stay_ns {
            // In earlier releases, the rule for short stays below ignored the latency limit.
            if release == Release::Now && !in_time {
                break;
            }
            if replaces_poll(release, states, forecast, (state, index), in_time) {
                return (index, deeper.target_residency_ns);
            }
            return state_for_short_stay(states, moment, forecast, state, index);
        }
        if !in_time {
            break;
        }
        state = index;
        next = states.deeper(index);
    }
    (state, stay_ns)
}

/// Whether `next` replaces a poll although it does not pay off in the predicted stay, because it
/// pays off before the timer.
fn replaces_poll(
    release: Release,
    states: &Table,
    forecast: &Forecast,
    (state, next): (usize, usize),
    in_time: bool,
) -> bool {
    let deeper = states.at(next);
    let allowed = match release {
        Release::V6_2 | Release::V6_14 => in_time,
        // Polling is worth it only if a halt would take long to pay off.
        Release::Now => {
            deeper.target_residency_ns < SHORT_NS && deeper.exit_latency_ns <= forecast.stay_ns
        }
    };
    states.at(state).polls() && deeper.target_residency_ns <= forecast.timer_ns && allowed
}

/// Chooses the state if the stay is too short for `next`. Returns the state and its assumed stay, in ns.
fn state_for_short_stay(
    states: &Table,
    moment: &Moment,
    forecast: &Forecast,
    state: usize,
    next: usize,
) -> (usize, u64) {
    let tick_ns = states.tick_ns();
    let stay_ns = forecast.stay_ns;
    let residency_ns = states.at(state).target_residency_ns;
    let deeper_pays = states.at(next).target_residency_ns <= forecast.event_ns;
    match (stay_ns < tick_ns, moment.tick_stopped) {
        (true, _) => (state, stay_ns),
        // The stay is longer than a tick but too short for the next state: with the tick on, there
        // will be another choice soon.
        (false, false) => (state, residency_ns),
        // Without the tick, a state that is too deep is better than a long stay in a shallow state.
        (false, true) if residency_ns < tick_ns && deeper_pays => (next, stay_ns),
        (false, true) => (state, stay_ns),
    }
}
