// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which Linux idles, chosen by its command line.

use core::fmt;

use super::{Word, words};

words! {
    /// How Linux, as the guest, idles. A kernel chooses once, at its boot.
    LinuxCpuidle {
        /// Linux itself chooses how it idles.
        Default = "default",
        /// Linux polls, and never executes WFI.
        Nohlt = "nohlt",
        /// Linux polls on each CPU whose file `idle_poll` contains 1, which the measuring program
        /// writes there. The kernel needs a patch for this.
        IdlePoll = "idle-poll",
        /// Linux idles in its own loop with WFI: no part of cpuidle runs.
        Off = "off",
        /// Linux idles with cpuidle's driver `haltpoll` and governor `haltpoll`: it polls before it halts.
        Haltpoll = "haltpoll",
        /// Linux idles in the machine's states, and governor `ladder` chooses.
        Ladder = "governor:ladder",
        /// Linux idles in the machine's states, and governor `menu` chooses.
        Menu = "governor:menu",
        /// Linux idles in the machine's states, and governor `teo` chooses.
        Teo = "governor:teo",
    }
}

impl LinuxCpuidle {
    /// Returns the governor that has to choose, if any.
    #[must_use]
    pub const fn governor(self) -> Option<&'static str> {
        match self {
            Self::Default | Self::Nohlt | Self::IdlePoll | Self::Off => None,
            Self::Haltpoll => Some("haltpoll"),
            Self::Ladder => Some("ladder"),
            Self::Menu => Some("menu"),
            Self::Teo => Some("teo"),
        }
    }

    /// Whether a governor has to choose among states of the machine, which then needs a state deeper than
    /// WFI.
    #[must_use]
    pub const fn needs_states(self) -> bool {
        match self {
            Self::Default | Self::Nohlt | Self::IdlePoll | Self::Off | Self::Haltpoll => false,
            Self::Ladder | Self::Menu | Self::Teo => true,
        }
    }

    /// Returns the kernel's arguments (Linux, Documentation/admin-guide/kernel-parameters.txt and
    /// Documentation/virt/guest-halt-polling.rst).
    #[must_use]
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Default | Self::IdlePoll => &[],
            Self::Nohlt => &["nohlt"],
            Self::Off => &["cpuidle.off=1"],
            Self::Haltpoll => &["cpuidle.governor=haltpoll", "cpuidle_haltpoll.force=1"],
            Self::Ladder => &["cpuidle.governor=ladder"],
            Self::Menu => &["cpuidle.governor=menu"],
            Self::Teo => &["cpuidle.governor=teo"],
        }
    }
}
