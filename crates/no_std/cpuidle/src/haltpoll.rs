// SPDX-License-Identifier: MIT OR Apache-2.0
//! `haltpoll`: polls for as long as the last waits would have required.
//!
//! `haltpoll` is the governor of Linux guests (`Documentation/virt/guest-halt-polling.rst`).
//! [`wait::governor::Guest`] makes the poll limit grow and shrink. The governor uses two states,
//! polling and the next state, and ignores latency limits above 0. A latency limit of 0 makes it
//! poll: if the governor's own limit is 0, it then polls up to the table's limit and keeps that as
//! its own limit, because Linux's poll loop overwrites the governor's limit with the limit that the
//! loop computes.
//!
//! If state 0 does not poll, which Linux's governor does not expect, the governor halts in that state.

use wait::governor::{Guest, Tunables};

use crate::{Choice, Governor, Moment, Outcome, Table, Wake};

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Haltpoll(Guest);

impl Haltpoll {
    /// Returns a governor with limit 0: its first wait halts. The times of `tunables` are in ns.
    #[must_use]
    pub const fn new(tunables: Tunables) -> Self {
        Self(Guest::new(tunables))
    }
}

impl Governor for Haltpoll {
    fn select(&mut self, states: &Table, moment: &Moment, _: impl FnOnce() -> u64) -> Choice {
        let strict = moment.latency_limit_ns == 0;
        if !states.at(0).polls() || (self.0.limit() == 0 && !strict) {
            let state = usize::from(states.at(0).polls());
            return Choice::with_poll_limit(states, state, !strict);
        }
        let limit_ns = self.0.kept_limit();
        let poll = Choice::keep_tick(states, 0);
        Choice {
            poll_limit_ns: if limit_ns == 0 {
                poll.poll_limit_ns
            } else {
                limit_ns
            },
            ..poll
        }
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        if states.at(outcome.state).polls() {
            self.0.polled(outcome.wake != Wake::PollTimeout);
            self.0.begin_at(states.poll_limit_ns());
        } else {
            self.0.halted(outcome.residency_ns);
        }
    }
}
