// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choices of an oracle, which knows when events will come.
//!
//! For each interval, the oracle enters one state, once, with the tick stopped. Of the states that the latency limit
//! allows, it chooses the one that costs the least energy: the deepest state whose target residency the interval
//! reaches. No governor can use less energy with the same states. A governor may divide an interval into several stays.
//! The price of each stay is at least 0, and each moment up to the event costs at least the power of the deepest state
//! that the governor entered. The oracle would have paid the price of entering this state only once. The oracle's
//! choice is never too deep. The choice is too shallow only if the latency limit forbids a state that would have paid
//! off. The oracle does not give a bound for lateness: polling reaches the lowest lateness, 0.

use super::ledger::Ledger;
use super::replay::Setting;
use super::states::States;
use super::trace::Trace;

/// Replays `trace` with the oracle's choices. Power-sleep-demotion prevention (PSD) does not restrict them.
pub fn oracle(trace: &Trace, states: &States, setting: &Setting) -> Ledger {
    let mut ledger = Ledger::default();
    for interval in &trace.intervals {
        let stay_ns = interval.duration_ns;
        let index = states.table.deepest(stay_ns, setting.latency_limit_ns);
        ledger.add_stay(states, index, stay_ns, 0);
        let lateness_ns = states.table.at(index).exit_latency_ns;
        ledger.lateness_ns.push(lateness_ns);
    }
    ledger.sort();
    ledger
}
