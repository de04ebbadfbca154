// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways of waiting, and their properties.

use core::fmt;

use crate::{Governor, Word, Workload};

/// Properties of a way of waiting.
struct Nature {
    polls: bool,
    halts: bool,
    uses_events: bool,
    limited: bool,
    own_limit_us: Option<u32>,
    keeps_a_limit: bool,
    needs_stream: bool,
    needs_wfxt: bool,
    needs_sev: bool,
}

const PLAIN: Nature = Nature {
    polls: false,
    halts: false,
    uses_events: false,
    limited: false,
    own_limit_us: None,
    keeps_a_limit: false,
    needs_stream: false,
    needs_wfxt: false,
    needs_sev: false,
};

/// Declares the ways without a governor, with the [`Nature`] of each.
macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident = $word:literal: { $($field:ident: $value:expr),* },)*) => {
        /// How the receiving vCPU waits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Wait {
            $($(#[$doc])* $name,)*
            /// The receiver waits in idle states that a governor chooses: `governor:teo`.
            Governed(Governor),
        }

        impl Wait {
            /// The ways without a governor.
            pub const WAYS: &'static [Self] = &[$(Self::$name),*];

            const fn nature(self) -> Nature {
                match self {
                    $(Self::$name => Nature { $($field: $value,)* ..PLAIN },)*
                    Self::Governed(governor) => Nature {
                        polls: true,
                        halts: true,
                        uses_events: true,
                        limited: governor.limited(),
                        ..PLAIN
                    },
                }
            }
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
    /// Does not wait: runs something else until it is interrupted.
    Busy = "busy": {},
    /// Reads the request word again and again.
    Spin = "spin": { polls: true, keeps_a_limit: true },
    /// Like `spin`, with YIELD before each read.
    Yield = "yield": { polls: true, keeps_a_limit: true },
    /// WFE with the monitor armed on the request word, bounded by the event stream.
    Wfe = "wfe": { polls: true, uses_events: true, keeps_a_limit: true, needs_stream: true },
    /// WFE without a monitor; the waker sends an event.
    WfeSev = "wfe-sev": { polls: true, uses_events: true, keeps_a_limit: true, needs_stream: true, needs_sev: true },
    /// WFET with the monitor armed on the request word, bounded by its deadline.
    Wfet = "wfet": { polls: true, uses_events: true, keeps_a_limit: true, needs_wfxt: true },
    /// WFI.
    Wfi = "wfi": { halts: true },
    /// Polls with the best available method up to a limit, then executes WFI: the bare loop,
    /// without a governor.
    PollWfi = "poll-wfi": { polls: true, uses_events: true, halts: true, limited: true, keeps_a_limit: true },
    /// Like `poll-wfi`, with the limit adapted to the time that the last waits would have needed.
    Haltpoll = "haltpoll": { polls: true, uses_events: true, halts: true, limited: true, own_limit_us: Some(200) },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Probes of the features that a poll with the best method depends on.
const BEST: &[&str] = &["wfe_halts", "monitor_wakes_wfe"];

impl Wait {
    /// Whether the receiver reads the request word while it waits, so that a wake-up needs no
    /// interrupt.
    #[must_use]
    pub const fn polls(self) -> bool {
        self.nature().polls
    }

    /// Whether the receiver may execute WFI.
    #[must_use]
    pub const fn halts(self) -> bool {
        self.nature().halts
    }

    /// Whether the receiver may execute WFE or WFET.
    #[must_use]
    pub const fn uses_events(self) -> bool {
        self.nature().uses_events
    }

    /// Returns the governor that chooses among idle states, if one does.
    #[must_use]
    pub const fn governor(self) -> Option<Governor> {
        if let Self::Governed(governor) = self {
            Some(governor)
        } else {
            None
        }
    }

    /// Whether a poll limit applies.
    #[must_use]
    pub const fn limited(self) -> bool {
        self.nature().limited
    }

    /// Returns the way's own largest poll limit, in microseconds, which applies unless the plan names one: for
    /// `haltpoll`, the published default of `guest_halt_poll_ns`.
    #[must_use]
    pub const fn own_limit_us(self) -> Option<u32> {
        self.nature().own_limit_us
    }

    /// Whether the way's poll can keep a constant limit, whatever comes after the poll. Workload
    /// `overshoot` needs that.
    #[must_use]
    pub const fn keeps_a_limit(self) -> bool {
        self.nature().keeps_a_limit
    }

    /// Whether only the event stream ends the wait if an event is lost.
    #[must_use]
    pub const fn needs_stream(self) -> bool {
        self.nature().needs_stream
    }

    /// Whether the way needs FEAT_WFxT.
    #[must_use]
    pub const fn needs_wfxt(self) -> bool {
        self.nature().needs_wfxt
    }

    /// Whether the waker has to send an event.
    #[must_use]
    pub const fn needs_sev(self) -> bool {
        self.nature().needs_sev
    }

    /// Names the probes of the features that the machine has to model for `workload` to show the
    /// intended effect of this wait.
    #[must_use]
    pub const fn depends_on(self, workload: Workload) -> &'static [&'static str] {
        match self {
            // Workload `stream` arms no monitor.
            Self::Wfe if matches!(workload, Workload::Stream) => {
                &["wfe_halts", "event_stream_period_ok"]
            }
            Self::Wfe => &["wfe_halts", "monitor_wakes_wfe", "event_stream_period_ok"],
            Self::WfeSev => &["wfe_halts", "sev_wakes_wfe", "event_stream_period_ok"],
            Self::Wfet => &["wfet_halts", "monitor_wakes_wfe"],
            Self::PollWfi | Self::Haltpoll | Self::Governed(_) => BEST,
            // A CPU that checks repeatedly sees something new only after another CPU has run.
            Self::Busy | Self::Spin | Self::Yield if !workload.is_alone() => &["cpus_run_at_once"],
            Self::Busy | Self::Spin | Self::Yield | Self::Wfi => &[],
        }
    }
}
