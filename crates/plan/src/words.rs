// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that options, boot arguments, records and results share.

use core::fmt;

/// Declares an enum whose values are words.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            const NAMES: &'static [&'static str] = &[$($word),*];
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

/// A value with a name.
pub trait Word: Copy + PartialEq + fmt::Display + 'static {
    /// Every value, in the order of the documentation.
    const ALL: &'static [Self];
    /// Their names.
    const NAMES: &'static [&'static str];

    /// Its name.
    fn name(self) -> &'static str;

    /// The value with this name.
    #[must_use]
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == text)
    }

    /// Whether `text` names it, or all of its family: `all`, and `governor:all` for
    /// `governor:menu`.
    #[must_use]
    fn is_meant_by(self, text: &str) -> bool {
        self.name() == text || text.strip_suffix("all") == Some(family(self.name()))
    }
}

/// What the names of a family begin with, like `governor:`; nothing for others.
pub(crate) fn family(name: &str) -> &str {
    name.split_once(':')
        .map_or("", |(family, _)| &name[..=family.len()])
}

words! {
    /// What is run.
    Workload {
        /// One CPU interrupts another and waits until its handler has run.
        Ipi = "ipi",
        /// Two CPUs wake each other.
        Pingpong = "pingpong",
        /// Function calls to other CPUs, one after another.
        Ipistorm = "ipistorm",
        /// Groups of tasks that send to groups of tasks.
        Messaging = "messaging",
        /// A task asks a supervisor on another CPU and waits for its answer.
        Notify = "notify",
        /// Requests to a device that answers after a while.
        Io = "io",
        /// Periodic wake-ups against a deadline.
        Timer = "timer",
        /// Mostly nothing.
        Idle = "idle",
        /// One CPU waits for the event stream, and for nothing else.
        Stream = "stream",
        /// One CPU polls up to its limit, and nobody wakes it.
        Overshoot = "overshoot",
    }

    /// Whom `ipistorm` calls.
    Calls {
        /// The CPU whose number is the caller's plus the offset.
        Single = "single",
        /// Those of the mask.
        Mask = "mask",
        /// All others.
        All = "all",
    }

    /// How a function call reaches a CPU that polls.
    CallBy {
        /// By a bit of its own: the CPU leaves the poll, calls, and does not schedule.
        Notify = "notify",
        /// By the bit that asks it to schedule, so that it also does.
        Resched = "resched",
        /// By interrupt, always.
        Ipi = "ipi",
        /// As `resched`, but the scheduler does not search for work where there was none.
        SkipNewidle = "skip-newidle",
        /// As `resched`, but the idle loop returns at once where nothing is to run.
        SmIdle = "sm-idle",
    }

    /// How a device's times are distributed.
    Spread {
        /// All alike.
        Fixed = "fixed",
        /// From half to one and a half times the mean, all as likely.
        Uniform = "uniform",
        /// Exponentially.
        Exponential = "exponential",
    }

    /// Which CPU a device interrupts.
    Completion {
        /// The one that submitted.
        Same = "same",
        /// The next one, which wakes the one that submitted.
        Other = "other",
    }

    /// Something that is on or off.
    Switch {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }

    /// Who is interrupted in workload `ipi`.
    Shape {
        /// Nobody: what the measurement itself costs.
        Dry = "dry",
        /// The sender.
        Itself = "self",
        /// One other CPU.
        One = "one",
        /// All other CPUs.
        Broadcast = "broadcast",
    }

    /// How the receiving vCPU waits.
    Wait {
        /// It does not: it runs something else until it is interrupted.
        Busy = "busy",
        /// Reads the request word again and again.
        Spin = "spin",
        /// As `spin`, with YIELD before each look.
        Yield = "yield",
        /// WFE with the monitor armed on the request word, bounded by the event stream.
        Wfe = "wfe",
        /// WFE without monitor; the waker sends an event.
        WfeSev = "wfe-sev",
        /// WFET with the monitor armed on the request word, bounded by its deadline.
        Wfet = "wfet",
        /// WFI.
        Wfi = "wfi",
        /// Polls by the best method present up to a limit, then WFI.
        PollWfi = "poll-wfi",
        /// As `poll-wfi`, with the limit adapted to what the last waits would have needed.
        Haltpoll = "haltpoll",
        /// The idle states, chosen by governor `menu`.
        Menu = "governor:menu",
        /// The same by `teo`, as it is now.
        Teo = "governor:teo",
        /// By `teo` as of early 2023.
        Teo62 = "governor:teo-6.2",
        /// By `teo` as of early 2023, looking at utilisation.
        TeoUtil = "governor:teo-util",
        /// By `ladder`.
        Ladder = "governor:ladder",
        /// By `haltpoll`, with the idle states.
        GovernedHaltpoll = "governor:haltpoll",
        /// By the poll limit alone.
        Fixed = "governor:fixed",
    }

    /// Which waits of the guest trap into the hypervisor.
    Trap {
        /// None.
        None = "none",
        /// WFI and WFIT (HCR_EL2.TWI).
        Wfi = "wfi",
        /// WFE and WFET (HCR_EL2.TWE).
        Wfe = "wfe",
        /// All four.
        Both = "both",
    }

    /// How an SGI reaches the receiving vCPU.
    Deliver {
        /// It traps at the sender and becomes a list register at the receiver.
        Inject = "inject",
        /// The guest owns the CPU interface (HCR_EL2.IMO=FMO=0); nothing exits.
        Direct = "direct",
    }

    /// Whether a waker interrupts a CPU that polls.
    Wake {
        /// Always.
        Ipi = "ipi",
        /// Not when the receiver is polling.
        Elide = "elide",
    }

    /// How EL2 chooses how long it polls before it halts for a trapped WFI.
    HostPoll {
        /// As long as `host-poll-us` says.
        Fixed = "fixed",
        /// By KVM's rules, which grow and shrink the limit.
        Adaptive = "adaptive",
    }

    /// Whether a guest that polls says so to EL2, which then does not poll too.
    Hint {
        /// It does not.
        Silent = "silent",
        /// It does, by hypercall.
        Tell = "tell",
    }

    /// Whether cells are run once more with time stamps, to show where the time goes.
    Stages {
        /// They are.
        On = "on",
        /// They are not.
        Off = "off",
    }

    /// What the guest's image runs under.
    Under {
        /// The hypervisor.
        Rouse = "rouse",
        /// Nothing: EL1 of the bare machine.
        None = "none",
    }
}

impl Wait {
    /// Whether it looks at the request word while it waits, so that a wake-up
    /// needs no interrupt.
    #[must_use]
    pub const fn polls(self) -> bool {
        !matches!(self, Self::Busy | Self::Wfi)
    }

    /// Whether it may execute WFI.
    #[must_use]
    pub const fn halts(self) -> bool {
        matches!(self, Self::Wfi | Self::PollWfi | Self::Haltpoll) || self.governed()
    }

    /// Whether a governor chooses among idle states.
    #[must_use]
    pub const fn governed(self) -> bool {
        matches!(
            self,
            Self::Menu
                | Self::Teo
                | Self::Teo62
                | Self::TeoUtil
                | Self::Ladder
                | Self::GovernedHaltpoll
                | Self::Fixed
        )
    }

    /// The governor's name.
    #[must_use]
    pub fn governor(self) -> Option<&'static str> {
        self.name().strip_prefix("governor:")
    }

    /// Whether it may execute WFE or WFET.
    #[must_use]
    pub const fn uses_events(self) -> bool {
        self.polls() && !matches!(self, Self::Spin | Self::Yield)
    }

    /// Whether a poll limit applies.
    #[must_use]
    pub const fn limited(self) -> bool {
        matches!(self, Self::PollWfi | Self::Haltpoll | Self::Fixed)
    }

    /// Whether its poll can be held to a limit that is always the same, whatever
    /// comes after the poll: what workload `overshoot` needs.
    #[must_use]
    pub const fn keeps_a_limit(self) -> bool {
        matches!(
            self,
            Self::Spin | Self::Yield | Self::Wfe | Self::WfeSev | Self::Wfet | Self::PollWfi
        )
    }
}

impl Workload {
    /// Whether it runs on the executor.
    #[must_use]
    pub const fn has_tasks(self) -> bool {
        !matches!(self, Self::Ipi | Self::Pingpong) && !self.is_alone()
    }

    /// Whether one CPU does it by itself: nobody is woken or interrupted.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        matches!(self, Self::Stream | Self::Overshoot)
    }
}

impl Trap {
    /// Whether WFI and WFIT trap.
    #[must_use]
    pub const fn wfi(self) -> bool {
        matches!(self, Self::Wfi | Self::Both)
    }

    /// Whether WFE and WFET trap.
    #[must_use]
    pub const fn wfe(self) -> bool {
        matches!(self, Self::Wfe | Self::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<W: Word + fmt::Debug>() {
        for &word in W::ALL {
            assert_eq!(W::parse(word.name()), Some(word));
        }
        assert_eq!(W::parse(""), None);
    }

    #[test]
    fn every_word_reads_back() {
        round_trip::<Workload>();
        round_trip::<Shape>();
        round_trip::<Wait>();
        round_trip::<Trap>();
        round_trip::<Deliver>();
        round_trip::<Wake>();
        round_trip::<HostPoll>();
        round_trip::<Hint>();
        round_trip::<Under>();
        round_trip::<Calls>();
        round_trip::<CallBy>();
        round_trip::<Spread>();
        round_trip::<Completion>();
        round_trip::<Switch>();
    }
}
