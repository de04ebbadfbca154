// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle states.

/// How a CPU waits in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKind {
    /// The CPU looks at its request word; a waker need not interrupt it.
    Poll,
    /// WFI.
    Wfi,
    /// PSCI CPU_SUSPEND to a standby state: like WFI, but slow to leave.
    Standby,
}

/// An idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The state's name, for people.
    pub name: &'static str,
    /// How the CPU waits in the state.
    pub kind: StateKind,
    /// Time from the event that ends the stay to the first instruction, in ns.
    pub exit_latency_ns: u64,
    /// Shortest stay for which the state is cheaper than the next shallower state, in ns.
    pub target_residency_ns: u64,
    /// Whether governors may choose the state.
    pub enabled: bool,
}

impl State {
    /// Returns an enabled state; the times are in ns.
    #[must_use]
    pub const fn new(name: &'static str, kind: StateKind, exit: u64, residency: u64) -> Self {
        Self {
            name,
            kind,
            exit_latency_ns: exit,
            target_residency_ns: residency,
            enabled: true,
        }
    }

    /// Whether the CPU looks at its request word in this state.
    #[must_use]
    pub const fn polls(&self) -> bool {
        matches!(self.kind, StateKind::Poll)
    }
}
