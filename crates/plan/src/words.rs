// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that options, boot arguments, records and results share.
//!
//! What is asked of a word is an exhaustive match: a new word does not compile
//! until every question about it is answered.

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
    /// Why a cell ended.
    End {
        /// Its passes repeat each other.
        Settled = "settled",
        /// It has all wake-ups that were asked for.
        Samples = "samples",
        /// It has had its time.
        Budget = "budget",
    }
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
        /// None: what the measurement itself costs.
        Dry = "dry",
        /// The sender.
        Itself = "self",
        /// One other CPU.
        One = "one",
        /// All other CPUs.
        Broadcast = "broadcast",
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

    /// What a CPU executes before WFI.
    WfiBarrier {
        /// Nothing.
        None = "none",
        /// DSB SY, as Linux does: what it wrote before is complete when it halts.
        Dsb = "dsb",
    }

    /// Whether cells are run once more with time stamps, to show where the time goes.
    Stages {
        /// They are.
        On = "on",
        /// They are not.
        Off = "off",
    }

    /// A failure that is asked for, to see what it looks like and that it is noticed.
    Fault {
        /// EL2 panics before the guest runs.
        El2Panic = "el2-panic",
        /// EL2 reads what is not mapped.
        El2Abort = "el2-abort",
        /// EL2 does nothing any more.
        El2Hang = "el2-hang",
        /// The stack of EL2's start runs over.
        El2Overflow = "el2-overflow",
        /// EL2 writes into its code.
        El2WriteCode = "el2-write-code",
        /// EL2 goes to where its variables are.
        El2RunData = "el2-run-data",
        /// EL2 panics while the guest runs.
        El2PanicRunning = "el2-panic-running",
        /// The stack of a CPU runs over while the guest runs.
        El2OverflowRunning = "el2-overflow-running",
        /// EL2 panics in its own panic.
        El2PanicNested = "el2-panic-nested",
        /// EL2 panics while it holds the console.
        El2PanicHeld = "el2-panic-held",
        /// Every CPU that comes by panics at EL2.
        El2PanicEverywhere = "el2-panic-everywhere",
        /// A CPU that is started never arrives.
        SecondarySilent = "secondary-silent",
        /// The counter stands still.
        CounterStands = "counter-stands",
        /// The console takes nothing for a while.
        ConsoleStalls = "console-stalls",
        /// Somebody else's data is in the guest's RAM before the guest is.
        RamDirty = "ram-dirty",
        /// The interrupt controller loses SGI 0 of the second CPU.
        SgiLost = "sgi-lost",
        /// The guest panics.
        GuestPanic = "guest-panic",
        /// The guest reads what is not mapped.
        GuestAbort = "guest-abort",
        /// The guest does nothing any more.
        GuestHang = "guest-hang",
        /// The guest requests wake-ups without an interrupt.
        LostWakeUp = "lost-wake-up",
        /// The same, in a soak.
        SoakLostWakeUp = "soak-lost-wake-up",
        /// A bit is left in a request word.
        SoakLeak = "soak-leak",
        /// A list register keeps an interrupt that nothing will end.
        SoakStuckLr = "soak-stuck-lr",
        /// An interrupt is in two list registers.
        SoakListedTwice = "soak-listed-twice",
        /// An interrupt is delivered twice.
        SoakDoubleDelivery = "soak-double-delivery",
        /// The priority mask is left open.
        SoakUnbalancedMask = "soak-unbalanced-mask",
        /// A counter goes back.
        SoakCounterBack = "soak-counter-back",
        /// The virtual time goes back.
        SoakTimeBack = "soak-time-back",
        /// A bit is left in a pending word of EL2.
        SoakPendingWord = "soak-pending-word",
    }

    /// What the guest's image runs under.
    Under {
        /// The hypervisor.
        Rouse = "rouse",
        /// Nothing: EL1 of the bare machine.
        None = "none",
    }
}

impl Workload {
    /// Whether it runs on the executor.
    #[must_use]
    pub const fn has_tasks(self) -> bool {
        match self {
            Self::Ipi | Self::Pingpong | Self::Stream | Self::Overshoot => false,
            Self::Ipistorm
            | Self::Messaging
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle => true,
        }
    }

    /// Whether one CPU does it by itself: nothing is woken or interrupted.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        match self {
            Self::Stream | Self::Overshoot => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle => false,
        }
    }

    /// Whether it has groups of tasks.
    #[must_use]
    pub const fn has_groups(self) -> bool {
        match self {
            Self::Messaging | Self::Notify => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Stream
            | Self::Overshoot => false,
        }
    }

    /// Its period, microseconds, unless one is named; `None` if it has none.
    #[must_use]
    pub const fn period_us(self) -> Option<u32> {
        match self {
            Self::Timer => Some(1000),
            Self::Idle => Some(10_000),
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Notify
            | Self::Io
            | Self::Stream
            | Self::Overshoot => None,
        }
    }
}

impl Trap {
    /// Whether WFI and WFIT trap.
    #[must_use]
    pub const fn wfi(self) -> bool {
        match self {
            Self::Wfi | Self::Both => true,
            Self::None | Self::Wfe => false,
        }
    }

    /// Whether WFE and WFET trap.
    #[must_use]
    pub const fn wfe(self) -> bool {
        match self {
            Self::Wfe | Self::Both => true,
            Self::None | Self::Wfi => false,
        }
    }
}

impl Deliver {
    /// Whether the guest owns its CPU interface.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        match self {
            Self::Inject => false,
            Self::Direct => true,
        }
    }
}

impl Wake {
    /// Whether a receiver that polls is spared the interrupt.
    #[must_use]
    pub const fn elides(self) -> bool {
        match self {
            Self::Ipi => false,
            Self::Elide => true,
        }
    }
}

impl Shape {
    /// Whether a CPU waits that is not the sender.
    #[must_use]
    pub const fn has_receiver(self) -> bool {
        match self {
            Self::Dry | Self::Itself => false,
            Self::One | Self::Broadcast => true,
        }
    }
}

impl Fault {
    /// Whether the guest has a part in it that only the trials have.
    #[must_use]
    pub const fn is_trial(self) -> bool {
        match self {
            Self::El2PanicRunning
            | Self::El2OverflowRunning
            | Self::El2PanicNested
            | Self::El2PanicHeld
            | Self::El2PanicEverywhere
            | Self::RamDirty
            | Self::GuestPanic
            | Self::GuestAbort
            | Self::GuestHang => true,
            // The hypervisor's alone, or of a soak, which is asked for by itself.
            Self::El2Panic
            | Self::El2Abort
            | Self::El2Hang
            | Self::El2Overflow
            | Self::El2WriteCode
            | Self::El2RunData
            | Self::SecondarySilent
            | Self::CounterStands
            | Self::ConsoleStalls
            | Self::SgiLost
            | Self::LostWakeUp
            | Self::SoakLostWakeUp
            | Self::SoakLeak
            | Self::SoakStuckLr
            | Self::SoakListedTwice
            | Self::SoakDoubleDelivery
            | Self::SoakUnbalancedMask
            | Self::SoakCounterBack
            | Self::SoakTimeBack
            | Self::SoakPendingWord => false,
        }
    }
}
