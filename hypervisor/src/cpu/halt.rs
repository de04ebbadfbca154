// SPDX-License-Identifier: MIT OR Apache-2.0
//! How EL2 waits in a trapped WFI.

use wait::governor::Host;

/// Action of EL2 in a trapped WFI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    Halt,
    /// It polls for so many ticks, then halts.
    Poll(u64),
    /// It polls for as long as turned out to be worth it, and measures that.
    Adapt,
}

/// How EL2 waits for this vCPU's interrupts.
pub struct Halt {
    /// Ticks to poll before halting.
    pub poll: u64,
    /// The limit adapts instead.
    pub adaptive: Option<Host>,
    /// The guest has polled already, so EL2 does not.
    pub guest_polls: bool,
}

impl Halt {
    /// Halts at once.
    pub const fn new() -> Self {
        Self {
            poll: 0,
            adaptive: None,
            guest_polls: false,
        }
    }

    /// Returns the mode of a wait without deadline.
    pub fn mode(&self) -> WaitMode {
        match (self.limit(), &self.adaptive) {
            (None, _) => WaitMode::Halt,
            (Some(ticks), None) => WaitMode::Poll(ticks),
            (Some(_), Some(_)) => WaitMode::Adapt,
        }
    }

    /// Ticks to poll now; `None` where nothing is polled or adapted.
    pub fn limit(&self) -> Option<u64> {
        match (self.guest_polls, &self.adaptive) {
            (true, _) => None,
            (false, None) => (self.poll != 0).then_some(self.poll),
            // Also with limit 0: it grows by what waits turn out to last.
            (false, Some(host)) => Some(host.limit()),
        }
    }
}
