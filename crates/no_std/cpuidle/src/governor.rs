// SPDX-License-Identifier: MIT OR Apache-2.0
//! The questions to a governor, and its answers.

use crate::{FOREVER, Table};

/// The state of a CPU that has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time, ns, by a clock that never goes backwards.
    pub now_ns: u64,
    /// Time to the next tick, ns; meaningless if `tick_stopped`.
    pub next_tick_ns: u64,
    /// Whether the tick was stopped and the CPU has not run a task since, or the CPU has no tick.
    pub tick_stopped: bool,
    /// Longest allowed time from an event until the CPU runs again, in ns; [`FOREVER`] if there is no
    /// limit. This is the latency limit of Linux's PM QoS.
    pub latency_limit_ns: u64,
    /// How busy the CPU was lately, in 1024ths of its capacity.
    pub utilisation: u32,
    /// Number of the CPU's tasks that wait for a device.
    pub io_waiters: u32,
}

impl Moment {
    /// Returns the moment `now_ns` on a CPU with no tick, no limit and no load.
    #[must_use]
    pub const fn quiet_at(now_ns: u64) -> Self {
        Self {
            now_ns,
            next_tick_ns: FOREVER,
            tick_stopped: true,
            latency_limit_ns: FOREVER,
            utilisation: 0,
            io_waiters: 0,
        }
    }
}

/// The decision of a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the state.
    pub state: usize,
    /// Whether the CPU needs no tick while it is in the state.
    pub stop_tick: bool,
    /// The longest time to poll, in ns, if the state polls. After that, the governor gets
    /// [`Wake::PollTimeout`] and chooses again.
    pub poll_limit_ns: u64,
}

impl Choice {
    /// Returns the choice of `state`, with the table's poll limit if the state polls.
    #[must_use]
    #[inline(always)]
    pub const fn with_poll_limit(states: &Table, state: usize, stop_tick: bool) -> Self {
        let poll_limit_ns = if states.at(state).polls() {
            states.poll_limit_ns()
        } else {
            0
        };
        Self {
            state,
            stop_tick,
            poll_limit_ns,
        }
    }
}

/// The cause that ended a stay in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A request in the CPU's word, seen or announced by an interrupt.
    Request,
    /// Some other interrupt.
    Interrupt,
    /// The timer whose time `next_timer` returned.
    Timer,
    /// The scheduler tick.
    Tick,
    /// No event: the poll reached its limit.
    PollTimeout,
}

/// The result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Index of the state that was entered.
    pub state: usize,
    /// Time from entering the state until it was left, including the exit latency, in ns.
    pub residency_ns: u64,
    /// The cause that ended the stay.
    pub wake: Wake,
}

/// Chooses idle states for one CPU.
pub trait Governor {
    /// Chooses the state to enter. `next_timer` returns the time to the next timer other than the
    /// tick, in ns, or [`FOREVER`]. Finding that time may be expensive, so governors call it only
    /// if it matters.
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice;

    /// Learns from the outcome of the last choice.
    fn reflect(&mut self, states: &Table, outcome: &Outcome);

    /// Records that the chosen state was not entered: there was work, or firmware refused it.
    fn refused(&mut self) {}
}
