// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ladder`: one state deeper after some long stays, one shallower after a short
//! one.
//!
//! The oldest governor of Linux (`drivers/cpuidle/governors/ladder.c`), made for
//! CPUs with a periodic tick: it predicts nothing and asks for no timer. A stay,
//! less the exit latency, that is longer than the exit latency counts for
//! promotion, and [`PROMOTIONS`] of them with none shorter between promote; one
//! shorter than it demotes (`DEMOTION_COUNT` is 1). If the state may no longer be entered, it demotes until one may.
//!
//! It stands on halting states only; a latency limit of 0 makes it poll. Ours is
//! that it also polls where no halting state keeps the limit, that it begins again
//! at the bottom after either, and that it stops the tick, as Linux does unless a
//! governor objects.

use crate::{Choice, Governor, Moment, Outcome, Table};

/// Long stays that promote (`PROMOTION_COUNT`).
const PROMOTIONS: u32 = 4;

/// The governor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ladder {
    rung: usize,
    promotions: u32,
    /// Length of the last stay, until it was looked at, ns.
    residency_ns: Option<u64>,
}

impl Ladder {
    /// One that stands at the bottom.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rung: 0,
            promotions: 0,
            residency_ns: None,
        }
    }

    fn stand_on(&mut self, rung: usize) {
        if rung != self.rung {
            *self = Self {
                rung,
                ..Self::new()
            };
        }
    }

    /// Where a stay of `residency_ns` leads to.
    fn step(&mut self, states: &Table, limit_ns: u64, residency_ns: u64) {
        let threshold_ns = states.at(self.rung).exit_latency_ns;
        let slept_ns = residency_ns.saturating_sub(threshold_ns);
        let up = states.deeper(self.rung);
        let up = up.filter(|&up| states.allows(up, limit_ns) && slept_ns > threshold_ns);
        if let Some(up) = up {
            self.promotions += 1;
            if self.promotions >= PROMOTIONS {
                self.stand_on(up);
            }
        } else if slept_ns < threshold_ns {
            self.promotions = 0;
            let down = states.shallower(self.rung);
            let down = down.filter(|&down| !states.at(down).polls());
            if let Some(down) = down {
                self.stand_on(down);
            }
        }
    }
}

impl Governor for Ladder {
    fn select(&mut self, states: &Table, moment: &Moment, _: impl FnOnce() -> u64) -> Choice {
        let limit_ns = moment.latency_limit_ns;
        let bottom = states.first_halt(limit_ns);
        let residency_ns = self.residency_ns.take();
        if limit_ns == 0 || states.at(bottom).polls() {
            self.stand_on(states.shallowest());
            return Choice::keep_tick(states, states.shallowest());
        }
        if self.rung < bottom {
            self.stand_on(bottom);
        } else if !states.allows(self.rung, limit_ns) {
            let mut lower = (bottom..self.rung).rev();
            let lower = lower.find(|&index| states.allows(index, limit_ns));
            self.stand_on(lower.unwrap_or(bottom));
        } else if let Some(residency_ns) = residency_ns {
            self.step(states, limit_ns, residency_ns);
        }
        Choice::of(states, self.rung, true)
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        if !states.at(outcome.state).polls() {
            self.residency_ns = Some(outcome.residency_ns);
        }
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
    /// than 2: nothing is counted. Three long stays and a short one (3 - 2 = 1 < 2):
    /// counting begins again.
    #[test]
    fn four_long_stays_promote_and_a_short_one_demotes() {
        let mut governor = Ladder::new();
        let stays = [5, 5, 4, 5, 5, 79, 5, 5, 5, 3, 5, 5, 5, 5, 0];
        let chosen = walk(&mut governor, u64::MAX, &stays);
        assert_eq!(chosen, [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    }

    /// Up to the top with stays of 10 ms, then a limit of 40 us: state 2 at once. No
    /// promotion beyond it. A limit of 1 us: only polling keeps it, and afterwards the
    /// climb begins anew.
    #[test]
    fn a_latency_limit_demotes_until_it_is_kept() {
        let mut governor = Ladder::new();
        assert_eq!(walk(&mut governor, u64::MAX, &[10_000; 9])[8], 3);
        assert_eq!(walk(&mut governor, 40_000, &[10_000; 6]), [2; 6]);
        assert_eq!(walk(&mut governor, 1_000, &[10; 2]), [0; 2]);
        assert_eq!(walk(&mut governor, u64::MAX, &[5; 5]), [1, 1, 1, 1, 2]);
    }
}
