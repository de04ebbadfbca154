// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle states, governor, limits and statistics of one CPU.

use crate::{
    Choice, FOREVER, Governor, Moment, Outcome, Psd, Selected, Setup, Statistics, Table, TableError,
};

/// States, governor, limits and statistics of one CPU.
///
/// Each time the CPU has nothing to do, the idle loop calls [`Device::select`], enters the state
/// and reports the outcome to [`Device::reflect`]. Code that submits I/O calls
/// [`Device::submitted`], and calls [`Device::completed`] when the task's wait is over.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    states: Table,
    governor: Selected,
    psd: Psd,
    io_waiters: u32,
    latency_limit_ns: u64,
    statistics: Statistics,
}

impl Device {
    /// Returns a CPU with `states`, without a latency limit or a PSD window.
    #[must_use]
    pub const fn new(states: Table, governor: Setup) -> Self {
        Self {
            psd: Psd::new(0, states.tick_ns()),
            states,
            governor: Selected::new(governor),
            io_waiters: 0,
            latency_limit_ns: FOREVER,
            statistics: Statistics::new(),
        }
    }

    /// Sets the latency limit of this CPU, in ns; the stricter of this limit and
    /// [`Moment::latency_limit_ns`] applies. 0 makes the CPU poll if it can, and [`FOREVER`]
    /// removes the limit.
    pub const fn set_latency_limit(&mut self, limit_ns: u64) {
        self.latency_limit_ns = limit_ns;
    }

    /// Sets the PSD window.
    pub const fn set_psd(&mut self, psd: Psd) {
        self.psd = psd;
    }

    /// Allows or forbids a state.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Table::set_enabled`].
    pub fn set_enabled(&mut self, index: usize, enabled: bool) -> Result<(), TableError> {
        self.states.set_enabled(index, enabled)
    }

    /// Chooses the state to enter; see [`Governor::select`].
    #[inline]
    pub fn select(&mut self, moment: &Moment, next_timer: impl FnOnce() -> u64) -> Choice {
        let limit = moment.latency_limit_ns.min(self.latency_limit_ns);
        let moment = Moment {
            latency_limit_ns: self.psd.applied_limit(moment.now_ns, limit),
            io_waiters: self.io_waiters,
            ..*moment
        };
        self.governor.select(&self.states, &moment, next_timer)
    }

    /// Counts the outcome of the last choice, and lets the governor learn from it.
    #[inline]
    pub fn reflect(&mut self, outcome: &Outcome) {
        let Outcome {
            state,
            residency_ns,
            ..
        } = *outcome;
        self.statistics.add_stay(&self.states, state, residency_ns);
        self.governor.reflect(&self.states, outcome);
    }

    /// Records that state `index` could not be entered.
    pub fn count_rejection(&mut self, index: usize) {
        self.statistics.count_rejection(index);
        self.governor.refused();
    }

    /// Records that I/O was submitted on this CPU, and that a task waits for it.
    #[inline]
    pub const fn submitted(&mut self, now_ns: u64) {
        self.psd.submitted(now_ns);
        self.io_waiters = self.io_waiters.saturating_add(1);
    }

    /// Records that a task has stopped waiting for I/O.
    #[inline]
    pub const fn completed(&mut self) {
        self.io_waiters = self.io_waiters.saturating_sub(1);
    }

    /// Returns the states of this CPU.
    #[must_use]
    pub const fn states(&self) -> &Table {
        &self.states
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
