// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fixed:<us>`: polls for a fixed time, then halts.
//!
//! Behaves like `arm_poll_idle` (H. Okanovic, April 2024) without any other governor:
//! [`Table::poll_limit_ns`] does not shorten the poll limit, so the limit under test is the one in use.
//! Like `arm_poll_idle`, the governor halts in the shallowest halting state.

use crate::{Choice, Governor, Moment, Outcome, Table, Wake};

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    limit_ns: u64,
    missed: bool,
}

impl Fixed {
    /// Returns a governor that polls up to `limit_ns`, or never if that is 0.
    #[must_use]
    pub const fn new(limit_ns: u64) -> Self {
        Self {
            limit_ns,
            missed: false,
        }
    }
}

/// Polls for `limit_ns`, or halts if that is 0. Halting respects the latency limit; if no halting
/// state meets the limit, the CPU continues to poll.
pub(crate) fn poll_or_halt(states: &Table, moment: &Moment, limit_ns: u64) -> Choice {
    if let Some(state) = states.poll_state().filter(|_| limit_ns != 0) {
        return Choice {
            state,
            stop_tick: false,
            poll_limit_ns: limit_ns,
        };
    }
    let state = states.first_halt(moment.latency_limit_ns);
    Choice::with_poll_limit(states, state, !states.at(state).polls())
}

impl Governor for Fixed {
    fn select(&mut self, states: &Table, moment: &Moment, _: impl FnOnce() -> u64) -> Choice {
        let limit_ns = if self.missed { 0 } else { self.limit_ns };
        poll_or_halt(states, moment, limit_ns)
    }

    fn reflect(&mut self, _: &Table, outcome: &Outcome) {
        self.missed = outcome.wake == Wake::PollTimeout;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table;

    /// Polls, misses, halts, and polls again.
    #[test]
    fn a_missed_poll_is_followed_by_one_halt() {
        let states = table();
        let mut governor = Fixed::new(300_000);
        let mut chosen = Vec::new();
        for wake in [Wake::PollTimeout, Wake::Interrupt, Wake::Request] {
            let choice = governor.select(&states, &Moment::quiet_at(0), || 0);
            let state = choice.state;
            chosen.push((state, choice.poll_limit_ns));
            governor.reflect(
                &states,
                &Outcome {
                    state,
                    residency_ns: 0,
                    wake,
                },
            );
        }
        assert_eq!(chosen, [(0, 300_000), (1, 0), (0, 300_000)]);
        let mut never = Fixed::new(0);
        assert_eq!(never.select(&states, &Moment::quiet_at(0), || 0).state, 1);
    }

    #[test]
    fn where_a_halt_takes_too_long_it_polls_on() {
        let strict = Moment {
            latency_limit_ns: 1_999,
            ..Moment::quiet_at(0)
        };
        let choice = Fixed::new(0).select(&table(), &strict, || 0);
        assert_eq!(choice, Choice::with_poll_limit(&table(), 0, false));
    }
}
