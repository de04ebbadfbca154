// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle states.

/// How a CPU waits in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKind {
    /// It looks at its request word; a waker need not interrupt it.
    Poll,
    /// WFI.
    Wfi,
    /// PSCI CPU_SUSPEND to a standby state: WFI that takes long to leave.
    Standby,
}

/// An idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name, for people.
    pub name: &'static str,
    /// How the CPU waits in it.
    pub kind: StateKind,
    /// Time from the event that ends it to the first instruction, ns.
    pub exit_latency_ns: u64,
    /// Shortest stay that makes it cheaper than the next shallower state, ns.
    pub target_residency_ns: u64,
    /// It may be chosen.
    pub enabled: bool,
}

impl State {
    /// An enabled state; times in ns.
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

    /// The CPU looks at its request word in it.
    #[must_use]
    pub const fn polls(&self) -> bool {
        matches!(self.kind, StateKind::Poll)
    }
}
