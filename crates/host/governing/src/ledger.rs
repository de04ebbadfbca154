// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of a sequence of choices.

use cpuidle::Statistics;

use super::states::{FULL_POWER, States};

/// The costs of one governor's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Usage, time and misses of the states.
    pub statistics: Statistics,
    /// Energy of all intervals, each from the start of idling to the event. The unit is a thousandth of the energy that
    /// a running CPU takes in a nanosecond.
    pub energy: u128,
    /// Time spent polling and leaving states, in ns.
    pub awake_ns: u64,
    /// Time from each event to the first instruction, in ns, in the order of the events.
    pub lateness_ns: Vec<u64>,
    /// Number of choices for which the governor requested the time of the next timer.
    pub timer_asked: u64,
    /// Number of stays that the tick ended.
    pub ticks: u64,
}

impl Ledger {
    /// Adds a stay in state `index`: `slept_ns` is the time until the stay ended, and `exit_ns` is the part of the
    /// following exit latency that passed before the event.
    pub fn add_stay(&mut self, states: &States, index: usize, slept_ns: u64, exit_ns: u64) {
        let state = states.table.at(index);
        let residency_ns = slept_ns + state.exit_latency_ns;
        self.statistics.add_stay(&states.table, index, residency_ns);
        let exit = u128::from(FULL_POWER) * u128::from(exit_ns);
        self.energy += states.costs[index].cost_of_stay(slept_ns) + exit;
        self.awake_ns += state.exit_latency_ns;
        if state.polls() {
            self.awake_ns += slept_ns;
        }
    }

    /// Returns the number of choices.
    pub fn choices(&self) -> u64 {
        self.statistics.total().usage
    }

    /// Sorts the lateness of all events, for [`Ledger::quantile`].
    pub fn sort(&mut self) {
        self.lateness_ns.sort_unstable();
    }

    /// Returns the lateness that `per_mille` thousandths of the events do not exceed (nearest rank), in ns.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        hist::of_sorted(&self.lateness_ns, per_mille)
            .copied()
            .unwrap_or(0)
    }

    /// Returns the mean lateness, in ns.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.lateness_ns.iter().sum();
        sum as f64 / self.lateness_ns.len().max(1) as f64
    }

    /// Returns the energy, in per cent of the energy of a CPU that is never idle.
    pub fn energy_percent(&self, idle_ns: u64) -> f64 {
        percent(self.energy as f64, FULL_POWER as f64 * idle_ns as f64)
    }

    /// Returns the time awake, in per cent of the time idle.
    pub fn awake_percent(&self, idle_ns: u64) -> f64 {
        percent(self.awake_ns as f64, idle_ns as f64)
    }

    /// Returns the share of choices that were too deep, in per cent.
    pub fn too_deep_percent(&self) -> f64 {
        percent(self.statistics.total().above as f64, self.choices() as f64)
    }

    /// Returns the share of choices that were too shallow, in per cent.
    pub fn too_shallow_percent(&self) -> f64 {
        percent(self.statistics.total().below as f64, self.choices() as f64)
    }
}

/// Returns `part` of `all` in per cent; 0 if `all` is 0.
pub fn percent(part: f64, all: f64) -> f64 {
    if all == 0.0 { 0.0 } else { part * 100.0 / all }
}
