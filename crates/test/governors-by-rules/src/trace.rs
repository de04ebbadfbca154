// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace: the questions and reports to a governor, and its answers (rules G1 to G10).

/// The maximum number of states in a table (G8).
pub const MAX_STATES: usize = 10;

/// The time until the next timer if none is set: the longest duration (G2).
pub const NO_TIMER: i64 = i64::MAX;

/// The latency limit if none was set (G3).
pub const NO_LATENCY_LIMIT: i64 = i32::MAX as i64 * 1000;

/// Returns the tick's period in ns, for `hz` ticks per second, 1 or more (G1).
///
/// # Panics
///
/// If `hz` is 0.
pub fn tick_ns(hz: u32) -> i64 {
    assert!(hz > 0, "HZ must be 1 or more");
    let hz = i64::from(hz);
    (1_000_000_000 + hz / 2) / hz
}

/// An idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Exit latency in ns, 0 or more.
    pub exit_latency_ns: i64,
    /// Target residency in ns, 0 or more.
    pub target_residency_ns: i64,
    /// Whether the CPU polls in this state.
    pub polling: bool,
    /// Whether the state is disabled, by driver or user.
    pub disabled: bool,
}

/// The idle states, the shallowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    states: Vec<State>,
}

impl Table {
    /// Creates a table of `states`.
    ///
    /// # Panics
    ///
    /// If there is no state or more than [`MAX_STATES`], or a time is negative.
    pub fn new(states: &[State]) -> Self {
        assert!(
            (1..=MAX_STATES).contains(&states.len()),
            "a table has 1 to {MAX_STATES} states, not {}",
            states.len()
        );
        for state in states {
            assert!(
                state.exit_latency_ns >= 0 && state.target_residency_ns >= 0,
                "a state's times are 0 or more: {state:?}"
            );
        }
        Self {
            states: states.to_vec(),
        }
    }

    /// Returns the states.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Disables or enables state `index`.
    pub fn set_disabled(&mut self, index: usize, disabled: bool) {
        self.states[index].disabled = disabled;
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns a state's target residency, or 0 for an index after the last state (G8).
    pub(crate) fn residency(&self, index: usize) -> i64 {
        self.states
            .get(index)
            .map_or(0, |state| state.target_residency_ns)
    }

    /// Returns a state's exit latency, or 0 for an index after the last state (G8).
    pub(crate) fn latency(&self, index: usize) -> i64 {
        self.states
            .get(index)
            .map_or(0, |state| state.exit_latency_ns)
    }

    pub(crate) fn enabled(&self, index: usize) -> bool {
        !self.states[index].disabled
    }

    pub(crate) fn polls(&self, index: usize) -> bool {
        self.states[index].polling
    }
}

/// The CPU's state, as a governor sees it when it chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Time in ns until the next timer, assuming that the tick is stopped (G4). Can be negative. [`NO_TIMER`] if there
    /// is no timer.
    pub timer_ns: i64,
    /// Time in ns until the next programmed event, including the tick (G4). Can be negative.
    pub event_ns: i64,
    /// Whether the tick is already stopped.
    pub tick_stopped: bool,
    /// Number of this CPU's tasks that wait for I/O.
    pub io_waiters: u32,
    /// Latency limit in ns, 0 or more (G3).
    pub latency_limit_ns: i64,
    /// Utilisation of the CPU, in the unit of its capacity.
    pub utilisation: u64,
}

/// A governor's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The state to enter.
    pub state: usize,
    /// Whether the governor allows the tick to stop (G5).
    pub stop_tick: bool,
}

impl Choice {
    pub(crate) fn new(state: usize, stop_tick: bool) -> Self {
        Self { state, stop_tick }
    }
}

/// A sleep, as reported to a governor (G6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// The state that was actually entered.
    pub entered: usize,
    /// Time in ns that the CPU was in this state, including the exit latency, 0 or more.
    pub slept_ns: i64,
    /// Time in ns from the choice to the report: `slept_ns` plus the time of the idle loop itself.
    pub span_ns: i64,
    /// Whether the tick's handler ran (G10).
    pub by_tick: bool,
    /// Whether the poll ended because it reached its limit (P3).
    pub poll_limit_hit: bool,
}

/// How a choice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The CPU slept.
    Slept(Sleep),
    /// No state was entered: work was due, or the driver refused.
    Refused,
}

/// A governor of one CPU.
pub trait Governor {
    /// Chooses a state of `table`.
    fn choose(&mut self, table: &Table, ask: &Ask) -> Choice;

    /// Learns how the choice ended.
    fn learn(&mut self, table: &Table, event: &Event);
}
