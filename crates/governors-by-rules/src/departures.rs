// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that `crates/cpuidle` does not keep, as far as the comparison found.
//!
//! The comparison would end at the first difference, because what a governor learnt differs from
//! there on. So a governor can be told to depart from a rule as `cpuidle` does:
//! `crates/governors-by-rules/tests/against` shows that the two then agree at every step, and that
//! each departure makes a difference. Once `cpuidle` keeps a rule, that test fails and names the
//! departure to take out.

/// A rule that `cpuidle` does not keep, and what it does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// N3: half of a sleep shorter than L is a short sleep only if it is below 15 us.
    TeoShortIsMeasured,
    /// N5: wake-ups by the tick are held against the sum without the present one.
    TeoTicksAgainstBefore,
    /// N6: a hit is 7500 ns from the timer at most, not L/2 (as in the first posting of the
    /// change; f36de72673ad has L/2).
    TeoHitWithinConstant,
    /// N7: a new device begins without an event.
    TeoBeginsEmpty,
    /// N10: where no state is within the limit, the first enabled one bounds the candidate, not
    /// 0. Linux would enter a disabled state 0; `cpuidle` promises not to.
    TeoBoundIsEnabled,
    /// N13: a candidate that becomes 0 because of the timer keeps the tick as if it had been 0,
    /// even where state 0 does not poll and the timer is a tick away.
    TeoZeroByTimerKeepsTick,
    /// N13: early intercepts keep the tick if more than 5/8 of T (6.6 to 6.19), not from 2/3 on.
    TeoEarlyAboveFiveEighths,
    /// U5, G8: the deepest state's span has no end, instead of R/2.
    TeoUtilDeepestSpansForever,
    /// L3: a latency limit of 0 keeps the tick.
    LadderLimitZeroKeepsTick,
    /// L4: a refused entry is no sleep at all, not one of length 0: nothing is counted.
    LadderForgetsRefusals,
    /// L7: a short sleep in the first state, too, sets its count of long ones back.
    LadderFirstStateCountsDown,
    /// P2, H9: at a latency limit of 0 the poll limit is the table's, and it does not stay.
    HaltpollLimitZeroPollsAsTable,
}

/// Some departures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departures(Vec<Departure>);

impl Departures {
    /// None: all rules are kept.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// These.
    pub fn of(departures: &[Departure]) -> Self {
        Self(departures.to_vec())
    }

    /// Whether `departure` is one of them.
    pub fn has(&self, departure: Departure) -> bool {
        self.0.contains(&departure)
    }
}
