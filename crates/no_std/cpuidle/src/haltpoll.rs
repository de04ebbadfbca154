// SPDX-License-Identifier: MIT OR Apache-2.0
//! `haltpoll`: polls for as long as the last waits would have needed.
//!
//! The governor of Linux guests (`Documentation/virt/guest-halt-polling.rst`).
//! [`wait::governor::Guest`] makes the limit grow and shrink; this module applies it to
//! states. It uses two of them, polling and the next one, and ignores latency limits
//! above 0. A latency limit of 0 makes it poll; if its own limit is 0, it then polls up to the
//! table's limit, and keeps that as its own, since Linux's poll loop stores the limit that it
//! computes in place of the governor's.
//!
//! Where state 0 does not poll, which Linux's governor does not expect, it halts in that state.

use wait::governor::{Guest, Tunables};

use crate::{Choice, Governor, Moment, Outcome, Table, Wake};

/// The governor.
#[derive(Clone, Copy, Debug)]
pub struct Haltpoll(Guest);

impl Haltpoll {
    /// With limit 0: the first wait halts. Times of `tunables` are ns.
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
            return Choice::of(states, state, !strict);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::table;

    /// Published defaults: max 200 us, grow and shrink 2, grow start 50 us.
    ///
    /// | chosen | stay, us | limit afterwards, us |
    /// |---|---|---|
    /// | halt, as the limit is 0 | 150 | 0 * 2 < 50: 50 |
    /// | poll 50 | missed | 50, and one halt |
    /// | halt | 150 | 50 * 2 = 100 |
    /// | poll 100 | seen after 80 | 100 |
    /// | poll 100 | missed | 100, and one halt |
    /// | halt | 300 | 300 > 200: 100 / 2 = 50 |
    /// | poll 50 | missed | 50, and one halt |
    /// | halt | 300 | 50 / 2 = 25 < 50: 0 |
    /// | halt, as the limit is 0 | | |
    #[test]
    fn the_limit_follows_the_stays() {
        let states = table();
        let mut governor = Haltpoll::new(Tunables::GUEST);
        let mut chosen = Vec::new();
        for (stay_us, wake) in [
            (150, Wake::Interrupt),
            (50, Wake::PollTimeout),
            (150, Wake::Interrupt),
            (80, Wake::Request),
            (100, Wake::PollTimeout),
            (300, Wake::Interrupt),
            (50, Wake::PollTimeout),
            (300, Wake::Interrupt),
            (1, Wake::Interrupt),
        ] {
            let choice = governor.select(&states, &Moment::at(0), || 0);
            assert_eq!(choice.stop_tick, choice.state == 1);
            chosen.push((choice.state, choice.poll_limit_ns / 1000));
            let residency_ns = stay_us * 1000;
            governor.reflect(
                &states,
                &Outcome {
                    state: choice.state,
                    residency_ns,
                    wake,
                },
            );
        }
        let halt = (1, 0);
        assert_eq!(
            chosen,
            [
                halt,
                (0, 50),
                halt,
                (0, 100),
                (0, 100),
                halt,
                (0, 50),
                halt,
                halt
            ]
        );
    }

    #[test]
    fn a_limit_of_nothing_polls() {
        let strict = Moment {
            latency_limit_ns: 0,
            ..Moment::at(0)
        };
        let choice = Haltpoll::new(Tunables::GUEST).select(&table(), &strict, || 0);
        assert_eq!(choice, Choice::of(&table(), 0, false));
    }
}
