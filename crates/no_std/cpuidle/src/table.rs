// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a CPU's idle states.

use core::fmt;

use crate::{State, StateKind};

/// The most states in a table.
pub const MAX_STATES: usize = 8;

/// Bounds of a useful poll, from Linux's `drivers/cpuidle/poll_state.c`.
const POLL_MAX_OF_TICK: u64 = 16;
const POLL_MIN_NS: u64 = 10_000;

/// A fault in a table, with the number of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum TableError {
    /// There is no state, or there are more than [`MAX_STATES`].
    Count(usize),
    /// The tick's period is 0.
    NoTick,
    /// A state other than the first one polls.
    PollNotFirst(usize),
    /// The state's exit latency or target residency is below the previous state's.
    NotDeeper(usize),
    /// No state would be left enabled.
    NoneEnabled,
    /// There is no such state.
    NoSuchState(usize),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count} states; there have to be 1 to {MAX_STATES}"),
            Self::NoTick => f.write_str("the tick's period is 0; Linux has 1, 4 or 10 ms"),
            Self::PollNotFirst(index) => {
                write!(f, "state {index} polls; only state 0 can, put it first")
            }
            Self::NotDeeper(index) => write!(
                f,
                "state {index} has a lower exit latency or target residency than the one before it; \
                 order the states from shallow to deep"
            ),
            Self::NoneEnabled => f.write_str("no state is enabled; leave one that is"),
            Self::NoSuchState(index) => write!(f, "there is no state {index}"),
        }
    }
}

impl core::error::Error for TableError {}

/// The states of a CPU, from shallow to deep; at least one is enabled.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    states: [State; MAX_STATES],
    count: usize,
    shallowest: usize,
    tick_ns: u64,
    poll_limit_ns: u64,
}

impl Table {
    /// Returns a table of `states` for a CPU whose scheduler tick comes every `tick_ns`.
    ///
    /// # Errors
    ///
    /// Returns the first broken rule, as a [`TableError`].
    pub fn new(states: &[State], tick_ns: u64) -> Result<Self, TableError> {
        if tick_ns == 0 {
            return Err(TableError::NoTick);
        }
        // Fills unused slots, and is never enabled.
        let nothing = State {
            enabled: false,
            ..State::new("", StateKind::Standby, u64::MAX, u64::MAX)
        };
        let mut table = Self {
            states: [nothing; MAX_STATES],
            count: states.len(),
            shallowest: 0,
            tick_ns,
            poll_limit_ns: 0,
        };
        match table.states.get_mut(..states.len()) {
            Some(room) if !states.is_empty() => room.copy_from_slice(states),
            _ => return Err(TableError::Count(states.len())),
        }
        check_order(states)?;
        table.update_derived()?;
        Ok(table)
    }

    /// Returns the two states of `arm_poll_idle` (H. Okanovic, "arm64:
    /// cpuidle: Add arm_poll_idle", April 2024): exit latency and residency of WFI equal the poll
    /// limit, so that a governor that expects a shorter stay polls.
    ///
    /// # Errors
    ///
    /// Returns [`TableError::NoTick`].
    pub fn arm_poll_idle(limit_ns: u64, tick_ns: u64) -> Result<Self, TableError> {
        let poll = State::new("poll", StateKind::Poll, 0, 0);
        let wfi = State::new("wfi", StateKind::Wfi, limit_ns, limit_ns);
        Self::new(&[poll, wfi], tick_ns)
    }

    /// Allows or forbids a state.
    ///
    /// # Errors
    ///
    /// Returns [`TableError::NoSuchState`], or [`TableError::NoneEnabled`]; then
    /// nothing has changed.
    pub fn set_enabled(&mut self, index: usize, enabled: bool) -> Result<(), TableError> {
        if index >= self.count {
            return Err(TableError::NoSuchState(index));
        }
        let mut changed = *self;
        changed.states[index].enabled = enabled;
        changed.update_derived()?;
        *self = changed;
        Ok(())
    }

    /// Recomputes the values that depend on which states are enabled.
    fn update_derived(&mut self) -> Result<(), TableError> {
        let first = self.states().iter().position(|state| state.enabled);
        self.shallowest = first.ok_or(TableError::NoneEnabled)?;
        let longest = self.tick_ns / POLL_MAX_OF_TICK;
        let mut residencies = (1..self.count).filter_map(|index| {
            let state = &self.states[index];
            let counts = state.enabled && state.target_residency_ns >= POLL_MIN_NS;
            counts.then_some(state.target_residency_ns)
        });
        self.poll_limit_ns = residencies.next().unwrap_or(longest).min(longest);
        Ok(())
    }

    /// Returns all states, enabled or not.
    #[must_use]
    pub fn states(&self) -> &[State] {
        self.states.get(..self.count).unwrap_or(&self.states)
    }

    /// Returns state `index`; a state beyond the table is never enabled. Indices wrap at
    /// [`MAX_STATES`], so that the idle loop can't panic.
    #[must_use]
    #[inline(always)]
    pub const fn at(&self, index: usize) -> &State {
        &self.states[index % MAX_STATES]
    }

    /// Returns the number of states, enabled or not.
    #[must_use]
    #[inline(always)]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Period of the scheduler tick, ns.
    #[must_use]
    #[inline(always)]
    pub const fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Returns the longest time, in ns, for which the polling state polls by itself: the residency of the
    /// first halting state worth polling for (10 us or more), but at most a sixteenth of the tick. Longer
    /// poll limits, for instance 100 us at 1000 Hz, are out of reach.
    #[must_use]
    #[inline(always)]
    pub const fn poll_limit_ns(&self) -> u64 {
        self.poll_limit_ns
    }

    /// Returns the shallowest enabled state.
    #[must_use]
    #[inline(always)]
    pub const fn shallowest(&self) -> usize {
        self.shallowest
    }

    /// Whether a CPU that has to run again within `limit_ns` may enter state `index`: the state is enabled,
    /// and can be left in time. The CPU may always enter the shallowest state, since it has to wait
    /// somehow.
    #[must_use]
    #[inline(always)]
    pub const fn allows(&self, index: usize, limit_ns: u64) -> bool {
        let state = self.at(index);
        index == self.shallowest || (state.enabled && state.exit_latency_ns <= limit_ns)
    }

    /// Returns the deepest allowed state that pays off in a stay of `stay_ns`, or else the shallowest
    /// state.
    #[must_use]
    pub fn deepest(&self, stay_ns: u64, limit_ns: u64) -> usize {
        let pays = |&index: &usize| self.at(index).target_residency_ns <= stay_ns;
        let allowed = |&index: &usize| self.allows(index, limit_ns);
        let mut candidates = (0..self.count).rev().filter(allowed);
        candidates.find(pays).unwrap_or(self.shallowest)
    }

    /// Returns the next shallower enabled state.
    #[must_use]
    pub fn shallower(&self, index: usize) -> Option<usize> {
        let below = (0..index.min(self.count)).rev();
        below.into_iter().find(|&index| self.at(index).enabled)
    }

    /// Returns the next deeper enabled state.
    #[must_use]
    pub fn deeper(&self, index: usize) -> Option<usize> {
        (index.saturating_add(1)..self.count).find(|&index| self.at(index).enabled)
    }

    /// Returns the shallowest allowed state that does not poll. If there is none, returns the shallowest state.
    #[must_use]
    pub fn first_halt(&self, limit_ns: u64) -> usize {
        let halts = |&index: &usize| !self.at(index).polls() && self.allows(index, limit_ns);
        (0..self.count).find(halts).unwrap_or(self.shallowest)
    }

    /// Returns the polling state, if it is enabled.
    #[must_use]
    #[inline(always)]
    pub const fn poll_state(&self) -> Option<usize> {
        let first = self.at(0);
        if first.enabled && first.polls() {
            Some(0)
        } else {
            None
        }
    }
}

fn check_order(states: &[State]) -> Result<(), TableError> {
    for (index, pair) in states.windows(2).enumerate() {
        let (before, state) = (&pair[0], &pair[1]);
        if state.polls() {
            return Err(TableError::PollNotFirst(index + 1));
        }
        if state.exit_latency_ns < before.exit_latency_ns
            || state.target_residency_ns < before.target_residency_ns
        {
            return Err(TableError::NotDeeper(index + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests;
