// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ladder`: one state deeper after some long stays, one shallower after a short
//! one.
//!
//! The oldest governor of Linux (`drivers/cpuidle/governors/ladder.c`), made for
//! CPUs with a periodic tick: it predicts nothing and asks for no timer. A stay,
//! less the exit latency, that is longer than the exit latency counts for
//! promotion, and [`PROMOTIONS`] of them with none shorter between promote; one
//! shorter than it demotes (`DEMOTION_COUNT` is 1). It climbs to the very next state, and
//! only if that is enabled and keeps the latency limit.
//!
//! It stays on halting states only; a latency limit of 0 makes it poll, and the next nonzero
//! stay leads back. A refused entry is a stay of 0. It may step down to a disabled state,
//! which [`Selected`](crate::Selected) replaces. It never keeps the tick. All this equals
//! Linux 6.2 to 7.1.

use crate::{Choice, Governor, MAX_STATES, Moment, Outcome, Table};

/// Long stays that promote (`PROMOTION_COUNT`).
const PROMOTIONS: u32 = 4;

/// The governor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ladder {
    /// Where it stands; nothing before the first choice.
    rung: Option<usize>,
    /// Long stays in each state since a short one or since it was left.
    promotions: [u32; MAX_STATES],
    /// Length of the last stay, ns.
    residency_ns: u64,
}

impl Ladder {
    /// One that stands at the bottom.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rung: None,
            promotions: [0; MAX_STATES],
            residency_ns: 0,
        }
    }

    /// Where the last stay, in `rung`, leads to.
    fn step(&mut self, states: &Table, limit_ns: u64, rung: usize, bottom: usize) -> usize {
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
            self.step(states, limit_ns, rung, bottom)
        };
        if next != rung || limit_ns == 0 {
            self.promotions[rung % MAX_STATES] = 0;
        }
        self.rung = Some(next);
        Choice::of(states, next, true)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wake;
    use crate::table::tests::table;

    fn walk(governor: &mut Ladder, limit_ns: u64, stays_us: &[u64]) -> Vec<usize> {
        let states = table();
        let moment = Moment {
            latency_limit_ns: limit_ns,
            ..Moment::at(0)
        };
        let mut chosen = Vec::new();
        for stay_us in stays_us {
            let choice = governor.select(&states, &moment, || panic!("asked"));
            chosen.push(choice.state);
            let outcome = Outcome {
                state: choice.state,
                residency_ns: stay_us * 1000,
                wake: Wake::Interrupt,
            };
            governor.reflect(&states, &outcome);
        }
        chosen
    }

    /// Exit latencies 2, 40 and 400 us.
    ///
    /// Four stays of 5 us in WFI: 5 - 2 = 3 > 2 each, so the fifth choice is state
    /// 2. There 79 - 40 = 39 < 40: back at once. 4 - 2 = 2 is neither more nor less
    /// than 2: nothing is counted. Three long stays, a short one (3 - 2 = 1 < 2), which does
    /// not count at the bottom, and a long one: up again.
    #[test]
    fn four_long_stays_promote_and_a_short_one_demotes() {
        let mut governor = Ladder::new();
        let stays = [5, 5, 4, 5, 5, 79, 5, 5, 5, 3, 5, 5, 5, 5, 0];
        let chosen = walk(&mut governor, u64::MAX, &stays);
        assert_eq!(chosen, [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1]);
    }

    /// Up to the top with stays of 10 ms, then a limit of 40 us: state 2 at once. No
    /// promotion beyond it. A limit of 1 us leads to the bottom, which needs 2, and a limit
    /// of 0 to the poll; after any stay in that the climb begins again.
    #[test]
    fn a_latency_limit_demotes_until_it_is_kept() {
        let mut governor = Ladder::new();
        assert_eq!(walk(&mut governor, u64::MAX, &[10_000; 9])[8], 3);
        assert_eq!(walk(&mut governor, 40_000, &[10_000; 6]), [2; 6]);
        assert_eq!(walk(&mut governor, 1_000, &[10; 2]), [1; 2]);
        assert_eq!(walk(&mut governor, 0, &[10; 2]), [0; 2]);
        assert_eq!(walk(&mut governor, u64::MAX, &[5; 5]), [1, 1, 1, 1, 2]);
    }

    /// State 2 off: no climb over it. Off while it stands there: down to the bottom. A step
    /// down leads to the next state, off or not.
    #[test]
    fn it_does_not_climb_over_a_disabled_state() {
        let mut states = table();
        let moment = Moment::at(0);
        let outcome = |state, residency_ns| Outcome {
            state,
            residency_ns,
            wake: Wake::Interrupt,
        };
        let mut governor = Ladder::new();
        governor.select(&states, &moment, || 0);
        states.set_enabled(2, false).unwrap();
        for _ in 0..9 {
            governor.reflect(&states, &outcome(1, 10_000_000));
            assert_eq!(governor.select(&states, &moment, || 0).state, 1);
        }
        governor.reflect(&states, &outcome(2, 10_000_000));
        assert_eq!(governor.select(&states, &moment, || 0).state, 1);
        governor.reflect(&states, &outcome(3, 10_000));
        assert_eq!(governor.select(&states, &moment, || 0).state, 2);
    }

    /// After four long stays an entry that was refused: a stay of 0, and one rung down.
    #[test]
    fn a_refusal_is_a_short_stay() {
        let states = table();
        let mut governor = Ladder::new();
        assert_eq!(walk(&mut governor, u64::MAX, &[100; 5])[4], 2);
        governor.refused();
        assert_eq!(governor.select(&states, &Moment::at(0), || 0).state, 1);
    }
}
