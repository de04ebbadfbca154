// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choices of an oracle, which knows when events will come.
//!
//! For each interval, the oracle enters one state, once, with the tick stopped. Of the states that the latency limit
//! allows, it chooses the one that costs the least energy: the deepest state whose target residency the interval
//! reaches. No governor can use less energy with the same states. In whatever way a governor divides an interval into
//! stays, each stay has a price that is not negative, each moment up to the event costs at least the power of the
//! deepest state that the governor entered, and the oracle would have paid that state's price once. The oracle is never
//! too deep, and too shallow only if the latency limit forbids a state that would have paid off. The oracle does not
//! give a bound for lateness: polling reaches the lowest lateness, 0.

use super::ledger::Ledger;
use super::replay::Setting;
use super::states::States;
use super::trace::Trace;

/// Replays `trace` with the oracle's choices, which the PSD window does not restrict.
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
