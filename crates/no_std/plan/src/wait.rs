// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways of waiting, and what each does.

use core::fmt;

use crate::{Governor, Word, Workload};

/// Declares the ways that need no governor.
macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// How the receiving vCPU waits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Wait {
            $($(#[$doc])* $name,)*
            /// By the idle states, which a governor chooses: `governor:teo`.
            Governed(Governor),
        }

        impl Wait {
            /// The ways without a governor.
            pub const WAYS: &'static [Self] = &[$(Self::$name),*];
        }

        impl Word for Wait {
            const ALL: &'static [Self] = &{
                let mut all = [Self::Busy; Self::WAYS.len() + Governor::ALL.len()];
                let mut n = 0;
                while n < all.len() {
                    all[n] = match n.checked_sub(Self::WAYS.len()) {
                        None => Self::WAYS[n],
                        Some(governor) => Self::Governed(Governor::ALL[governor]),
                    };
                    n += 1;
                }
                all
            };
            const NAMES: &'static [&'static str] = &{
                let ways = [$($word),*];
                let mut names = [""; Self::ALL.len()];
                let mut n = 0;
                while n < names.len() {
                    names[n] = match Self::ALL[n] {
                        Self::Governed(governor) => governor.wait(),
                        _ => ways[n],
                    };
                    n += 1;
                }
                names
            };

            fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Governed(governor) => governor.wait(),
                }
            }
        }
    };
}

ways! {
    /// It does not: it runs something else until it is interrupted.
    Busy = "busy",
    /// Reads the request word again and again.
    Spin = "spin",
    /// Like `spin`, with YIELD before each look.
    Yield = "yield",
    /// WFE with the monitor armed on the request word, bounded by the event stream.
    Wfe = "wfe",
    /// WFE without monitor; the waker sends an event.
    WfeSev = "wfe-sev",
    /// WFET with the monitor armed on the request word, bounded by its deadline.
    Wfet = "wfet",
    /// WFI.
    Wfi = "wfi",
    /// Polls by the best method present up to a limit, then WFI: the bare loop, without a
    /// governor.
    PollWfi = "poll-wfi",
    /// Like `poll-wfi`, with the limit adapted to what the last waits would have needed.
    Haltpoll = "haltpoll",
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Probes of what a poll by the best method depends on.
const BEST: &[&str] = &["wfe_halts", "monitor_wakes_wfe"];

impl Wait {
    /// Whether it looks at the request word while it waits, so that a wake-up
    /// needs no interrupt.
    #[must_use]
    pub const fn polls(self) -> bool {
        match self {
            Self::Busy | Self::Wfi => false,
            Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::WfeSev
            | Self::Wfet
            | Self::PollWfi
            | Self::Haltpoll
            | Self::Governed(_) => true,
        }
    }

    /// Whether it may execute WFI.
    #[must_use]
    pub const fn halts(self) -> bool {
        match self {
            Self::Wfi | Self::PollWfi | Self::Haltpoll | Self::Governed(_) => true,
            Self::Busy | Self::Spin | Self::Yield | Self::Wfe | Self::WfeSev | Self::Wfet => false,
        }
    }

    /// Whether it may execute WFE or WFET.
    #[must_use]
    pub const fn uses_events(self) -> bool {
        match self {
            Self::Busy | Self::Spin | Self::Yield | Self::Wfi => false,
            Self::Wfe
            | Self::WfeSev
            | Self::Wfet
            | Self::PollWfi
            | Self::Haltpoll
            | Self::Governed(_) => true,
        }
    }

    /// The governor that chooses among idle states, if one does.
    #[must_use]
    pub const fn governor(self) -> Option<Governor> {
        match self {
            Self::Governed(governor) => Some(governor),
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::WfeSev
            | Self::Wfet
            | Self::Wfi
            | Self::PollWfi
            | Self::Haltpoll => None,
        }
    }

    /// Whether a poll limit applies.
    #[must_use]
    pub const fn limited(self) -> bool {
        match self {
            Self::PollWfi | Self::Haltpoll => true,
            Self::Governed(governor) => governor.limited(),
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::WfeSev
            | Self::Wfet
            | Self::Wfi => false,
        }
    }

    /// Its largest poll limit, microseconds, where that is its own unless one is
    /// named: for `haltpoll` the published default of `guest_halt_poll_ns`.
    #[must_use]
    pub const fn own_limit_us(self) -> Option<u32> {
        match self {
            Self::Haltpoll => Some(200),
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::WfeSev
            | Self::Wfet
            | Self::Wfi
            | Self::PollWfi
            | Self::Governed(_) => None,
        }
    }

    /// Whether its poll can be held to a limit that is always the same, whatever
    /// comes after the poll: what workload `overshoot` needs.
    #[must_use]
    pub const fn keeps_a_limit(self) -> bool {
        match self {
            Self::Spin | Self::Yield | Self::Wfe | Self::WfeSev | Self::Wfet | Self::PollWfi => {
                true
            }
            Self::Busy | Self::Wfi | Self::Haltpoll | Self::Governed(_) => false,
        }
    }

    /// Whether nothing but the event stream bounds it where an event is lost.
    #[must_use]
    pub const fn needs_stream(self) -> bool {
        match self {
            Self::Wfe | Self::WfeSev => true,
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfet
            | Self::Wfi
            | Self::PollWfi
            | Self::Haltpoll
            | Self::Governed(_) => false,
        }
    }

    /// Whether it cannot do without FEAT_WFxT.
    #[must_use]
    pub const fn needs_wfxt(self) -> bool {
        match self {
            Self::Wfet => true,
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::WfeSev
            | Self::Wfi
            | Self::PollWfi
            | Self::Haltpoll
            | Self::Governed(_) => false,
        }
    }

    /// Whether the waker has to send an event.
    #[must_use]
    pub const fn needs_sev(self) -> bool {
        match self {
            Self::WfeSev => true,
            Self::Busy
            | Self::Spin
            | Self::Yield
            | Self::Wfe
            | Self::Wfet
            | Self::Wfi
            | Self::PollWfi
            | Self::Haltpoll
            | Self::Governed(_) => false,
        }
    }

    /// Names the probes of what the machine has to model for `workload` to show what this wait is
    /// meant to do.
    #[must_use]
    pub const fn depends_on(self, workload: Workload) -> &'static [&'static str] {
        match self {
            // It arms no monitor.
            Self::Wfe if matches!(workload, Workload::Stream) => {
                &["wfe_halts", "event_stream_period_ok"]
            }
            Self::Wfe => &["wfe_halts", "monitor_wakes_wfe", "event_stream_period_ok"],
            Self::WfeSev => &["wfe_halts", "sev_wakes_wfe", "event_stream_period_ok"],
            Self::Wfet => &["wfet_halts", "monitor_wakes_wfe"],
            Self::PollWfi | Self::Haltpoll | Self::Governed(_) => BEST,
            // A CPU that looks again and again sees something new only after another CPU ran.
            Self::Busy | Self::Spin | Self::Yield if !workload.is_alone() => &["cpus_run_at_once"],
            Self::Busy | Self::Spin | Self::Yield | Self::Wfi => &[],
        }
    }
}
