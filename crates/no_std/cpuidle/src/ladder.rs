// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ladder`: goes one state deeper after some long stays, and one state shallower after a short
//! one.
//!
//! `ladder` is Linux's oldest governor (`drivers/cpuidle/governors/ladder.c`), made for CPUs with a
//! periodic tick: it predicts nothing and asks for no timer. A stay counts towards promotion if,
//! without the exit latency, it is still longer than the exit latency. [`PROMOTIONS`] such stays
//! without a shorter one in between promote the CPU; a shorter stay demotes it (`DEMOTION_COUNT` is
//! 1). The governor only goes to the very next state, if that is enabled and within the latency limit.
//!
//! It only uses halting states, except that a latency limit of 0 makes it poll; the next nonzero
//! stay leads back to a halting state. A refused entry counts as a stay of 0. The governor may
//! step down to a disabled state, which [`Selected`](crate::Selected) replaces. The governor never
//! keeps the tick. Linux 6.2 to 7.1 behave like this.

use crate::{Choice, Governor, MAX_STATES, Moment, Outcome, Table};

/// Number of long stays that lead to a promotion (`PROMOTION_COUNT`).
const PROMOTIONS: u32 = 4;

/// The governor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ladder {
    /// The current state; `None` before the first choice.
    rung: Option<usize>,
    /// Long stays in each state since the last short stay, or since the state was left.
    promotions: [u32; MAX_STATES],
    /// Length of the last stay, ns.
    residency_ns: u64,
}

impl Ladder {
    /// Returns a governor that starts in the shallowest halting state.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rung: None,
            promotions: [0; MAX_STATES],
            residency_ns: 0,
        }
    }

    /// Returns the state that follows the last stay, which was in `rung`.
    fn next_rung(&mut self, states: &Table, limit_ns: u64, rung: usize, bottom: usize) -> usize {
        let exit_ns = states.at(rung).exit_latency_ns;
        let keeps = |index: usize| states.at(index).exit_latency_ns <= limit_ns;
        let up = rung + 1;
        let may_climb = up < states.count() && states.at(up).enabled && keeps(up);
        let promotions = &mut self.promotions[rung % MAX_STATES];
        // A state below the bottom is left at once.
        let (least_ns, enough) = if rung < bottom {
            (exit_ns, 0)
        } else {
            (exit_ns.saturating_mul(2), PROMOTIONS)
        };
        if may_climb && self.residency_ns > least_ns {
            *promotions += 1;
            if *promotions >= enough {
                return up;
            }
        }
        if rung <= bottom {
            return rung;
        }
        if !states.at(rung).enabled || !keeps(rung) {
            let mut lower = (bottom + 1..rung).rev();
            return lower.find(|&index| keeps(index)).unwrap_or(bottom);
        }
        if self.residency_ns < exit_ns.saturating_mul(2) {
            *promotions = 0;
            return rung - 1;
        }
        rung
    }
}

impl Governor for Ladder {
    fn select(&mut self, states: &Table, moment: &Moment, _: impl FnOnce() -> u64) -> Choice {
        let limit_ns = moment.latency_limit_ns;
        let bottom = usize::from(states.at(0).polls());
        let rung = self.rung.unwrap_or(bottom);
        let next = if limit_ns == 0 {
            0
        } else {
            self.next_rung(states, limit_ns, rung, bottom)
        };
        if next != rung || limit_ns == 0 {
            self.promotions[rung % MAX_STATES] = 0;
        }
        self.rung = Some(next);
        Choice::with_poll_limit(states, next, true)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        self.residency_ns = outcome.residency_ns;
        if (1..states.count()).contains(&outcome.state) {
            self.rung = Some(outcome.state);
        }
    }

    fn refused(&mut self) {
        self.residency_ns = 0;
    }
}
