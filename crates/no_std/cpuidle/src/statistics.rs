// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of the choices, as Linux defines them (`Documentation/admin-guide/pm/cpuidle.rst`,
//! "Representation of Idle States").

use crate::{MAX_STATES, Table};

/// The counts of one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// How often the state was entered.
    pub usage: u64,
    /// How often an entry was refused, by firmware or because a request came first.
    pub rejected: u64,
    /// Time spent in the state, including the exit latency, in ns.
    pub time_ns: u64,
    /// Stays for which the state was too deep: shorter than its target residency, with a shallower state
    /// enabled.
    pub above: u64,
    /// Stays for which the state was too shallow: without the exit latency, they reached the target
    /// residency of the next deeper enabled state.
    pub below: u64,
}

/// The counts of all states of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics([StateCounts; MAX_STATES]);

impl Statistics {
    /// Returns counts that are all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(
            [StateCounts {
                usage: 0,
                rejected: 0,
                time_ns: 0,
                above: 0,
                below: 0,
            }; MAX_STATES],
        )
    }

    /// Returns the counts of state `index`.
    #[must_use]
    pub const fn of(&self, index: usize) -> &StateCounts {
        &self.0[index % MAX_STATES]
    }

    /// Returns the counts of all states together.
    #[must_use]
    pub fn total(&self) -> StateCounts {
        self.0
            .iter()
            .fold(StateCounts::default(), |sum, tally| StateCounts {
                usage: sum.usage + tally.usage,
                rejected: sum.rejected + tally.rejected,
                time_ns: sum.time_ns.saturating_add(tally.time_ns),
                above: sum.above + tally.above,
                below: sum.below + tally.below,
            })
    }

    /// Records that state `index` was left after `residency_ns`.
    pub fn add_stay(&mut self, states: &Table, index: usize, residency_ns: u64) {
        let state = states.at(index);
        let tally = &mut self.0[index % MAX_STATES];
        tally.usage += 1;
        tally.time_ns = tally.time_ns.saturating_add(residency_ns);
        if residency_ns < state.target_residency_ns {
            tally.above += u64::from(states.shallower(index).is_some());
        } else if residency_ns > state.exit_latency_ns
            && let Some(deeper) = states.deeper(index)
        {
            let slept = residency_ns - state.exit_latency_ns;
            tally.below += u64::from(slept >= states.at(deeper).target_residency_ns);
        }
    }

    /// Records that state `index` could not be entered.
    pub const fn count_rejection(&mut self, index: usize) {
        self.0[index % MAX_STATES].rejected += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table;

    /// Exit latency and residency of the states, us: 0/0, 2/10, 40/200, 400/2000.
    #[test]
    fn misses_are_those_of_linux() {
        let mut states = table();
        let count = |states: &Table, index, residency_us: u64| {
            let mut statistics = Statistics::new();
            statistics.add_stay(states, index, residency_us * 1000);
            let tally = *statistics.of(index);
            assert_eq!((tally.usage, tally.time_ns), (1, residency_us * 1000));
            assert_eq!(statistics.total(), tally);
            (tally.above, tally.below)
        };
        for (index, residency_us, expected) in [
            // 9 < 10: too deep. 10: fits.
            (1, 9, (1, 0)),
            (1, 10, (0, 0)),
            // 201 - 2 = 199 < 200: fits. 202 - 2 = 200: the next state would have paid off.
            (1, 201, (0, 0)),
            (1, 202, (0, 1)),
            // No state is shallower than polling, and none is deeper than the last.
            (0, 0, (0, 0)),
            (3, 1 << 40, (0, 0)),
        ] {
            assert_eq!(
                count(&states, index, residency_us),
                expected,
                "{index} {residency_us}"
            );
        }
        // With state 2 off, the next deeper state after 1 is 3, from 2000 us on.
        states.set_enabled(2, false).unwrap();
        assert_eq!(count(&states, 1, 202), (0, 0));
        assert_eq!(count(&states, 1, 2002), (0, 1));
        // If no shallower state is enabled, a short stay does not count as too deep.
        states.set_enabled(0, false).unwrap();
        assert_eq!(count(&states, 1, 9), (0, 0));
    }

    #[test]
    fn a_refusal_is_no_stay() {
        let mut statistics = Statistics::new();
        statistics.count_rejection(2);
        let total = statistics.total();
        assert_eq!((total.rejected, total.usage, total.time_ns), (1, 0, 0));
    }
}
