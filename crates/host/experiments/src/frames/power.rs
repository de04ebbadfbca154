// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of power: the time that the CPUs spend in each state, multiplied by the power of the state.
//!
//! The model is that of `cargo xtask governors` (`docs/governors.md`, "Energy"). A CPU draws the power of its state
//! until it leaves the state. Each stay in a state also costs a fixed amount of energy, so that a stay saves energy
//! only if it lasts at least the target residency.

use crate::runs::MeasuredCell;
use governing::{FULL_POWER, States};

/// Number of states in the experiment's table.
const COUNT: usize = 2;

/// The time that all CPUs spent in each state, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    whole: f64,
    /// Time in which CPUs were not in an idle state.
    run: f64,
    /// For each idle state, the number of stays, and the total time until the CPUs began to leave the state.
    stays: [(f64, f64); COUNT],
    /// The energy. The unit is a thousandth of the energy that a running CPU needs for one nanosecond.
    energy: f64,
}

impl Spent {
    pub fn of_cell(found: &MeasuredCell<'_>, states: &States) -> Self {
        let mut stays = [(0.0, 0.0); COUNT];
        let whole = found.seconds() * 1e9 * found.cpus();
        let mut run = whole;
        for (stay, state) in stays.iter_mut().zip(states.table.states()) {
            let name = |what: &str| format!("{}.{what}", state.name);
            let usage = found.count("cpuidle", &name("usage"));
            let time = found.time_counter("cpuidle", &name("time-ns"));
            run -= time;
            *stay = (
                usage,
                (time - usage * state.exit_latency_ns as f64).max(0.0),
            );
        }
        let mut spent = Self {
            whole,
            run,
            stays,
            energy: 0.0,
        };
        spent.energy = spent.energy_at(states);
        spent
    }

    /// Computes the energy if the states have the powers in `states`.
    fn energy_at(&self, states: &States) -> f64 {
        let stays = self.stays.iter().zip(&states.costs);
        let asleep = stays
            .map(|(&(usage, time), cost)| usage * cost.price as f64 + time * cost.power as f64);
        FULL_POWER as f64 * self.run + asleep.sum::<f64>()
    }

    /// Returns the mean power of a CPU, in thousandths of a running CPU's power.
    pub fn power(&self) -> f64 {
        self.energy / self.whole.max(1.0)
    }
}

#[cfg(test)]
impl Spent {
    /// Creates times whose mean power is `power`.
    pub fn with_power(power: f64) -> Self {
        let (run, stays) = (power, [(0.0, 0.0); COUNT]);
        Self {
            whole: 1.0,
            run,
            stays,
            energy: power,
        }
    }
}

/// Returns the power of the shallow state at which `one` takes as much energy as `other`. The fixed energy of stays is
/// unchanged, because the cost of entering and leaving a state does not depend on this power.
pub fn break_even(one: &Spent, other: &Spent, states: &States) -> f64 {
    let without = |spent: &Spent| {
        let (_, time) = spent.stays[0];
        (spent.energy - time * states.costs[0].power as f64) / spent.whole
    };
    let share = |spent: &Spent| spent.stays[0].1 / spent.whole;
    (without(other) - without(one)) / (share(one) - share(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> States {
        States::named("wfi:1:1+standby:30:200").unwrap()
    }

    fn spent(run: f64, stays: [(f64, f64); COUNT]) -> Spent {
        let whole = run + stays.iter().map(|(_, time)| time).sum::<f64>();
        let mut spent = Spent {
            whole,
            run,
            stays,
            energy: 0.0,
        };
        spent.energy = spent.energy_at(&states());
        spent
    }

    #[test]
    fn a_state_takes_its_power_and_the_price_of_its_stays() {
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
        near(spent(1e6, [(0.0, 0.0); 2]).power(), 1000.0);
        near(spent(0.0, [(9.0, 1e6), (0.0, 0.0)]).power(), 400.0);
        // One stay of 400 us at a power of 150. The stay's fixed energy is 250 times 200 us.
        near(
            spent(0.0, [(0.0, 0.0), (1.0, 400e3)]).power(),
            150.0 + 125.0,
        );
        // A stay as long as the target residency takes the same energy in both states.
        near(spent(0.0, [(0.0, 0.0), (1.0, 200e3)]).power(), 400.0);
    }

    #[test]
    fn at_the_break_even_both_take_the_same() {
        let (deep, shallow) = (
            spent(4e5, [(0.0, 0.0), (2.0, 6e5)]),
            spent(3e5, [(2.0, 6e5), (1.0, 1e5)]),
        );
        let power = break_even(&shallow, &deep, &states());
        assert!((150.0..400.0).contains(&power), "{power}");
        let mut cheaper = states();
        cheaper.costs[0].power = power.round() as u64;
        let [one, other] = [&shallow, &deep].map(|it| it.energy_at(&cheaper) / it.whole);
        assert!((one - other).abs() < 1.0, "{one} {other}");
        assert!(shallow.power() > deep.power() + 10.0);
    }
}
