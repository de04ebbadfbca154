// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses how EL2 waits in a trapped WFI.

use wait::governor::Host;

/// EL2's way of waiting in a trapped WFI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    Halt,
    /// EL2 polls for a number of ticks, then halts.
    Poll(u64),
    /// EL2 polls up to a limit that it adapts to the measured waits.
    Adapt,
}

/// How EL2 waits for this vCPU's interrupts.
pub struct Halt {
    /// Ticks to poll before halting.
    pub poll: u64,
    /// State of the adaptive limit, if that limit is used instead of `poll`.
    pub adaptive: Option<Host>,
    /// Whether the guest has already polled; EL2 then does not poll.
    pub guest_polls: bool,
}

impl Halt {
    /// Creates a state that halts at once.
    pub const fn new() -> Self {
        Self {
            poll: 0,
            adaptive: None,
            guest_polls: false,
        }
    }

    /// Returns the mode of a wait that has no deadline.
    pub fn wait_mode(&self) -> WaitMode {
        match (self.poll_limit(), &self.adaptive) {
            (None, _) => WaitMode::Halt,
            (Some(ticks), None) => WaitMode::Poll(ticks),
            (Some(_), Some(_)) => WaitMode::Adapt,
        }
    }

    /// Returns the ticks to poll now; `None` if EL2 neither polls nor adapts.
    pub fn poll_limit(&self) -> Option<u64> {
        match (self.guest_polls, &self.adaptive) {
            (true, _) => None,
            (false, None) => (self.poll != 0).then_some(self.poll),
            // A limit is returned even if it is 0, because it grows with the measured length of waits.
            (false, Some(host)) => Some(host.limit()),
        }
    }
}
