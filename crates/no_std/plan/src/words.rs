// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that options, boot arguments, records and results share.
//!
//! Each question about a word is an exhaustive match, or a column of the table that declares the
//! words, so a new word does not compile until every question is answered.

mod cpuidle;
mod fault;
mod neighbour;
mod workload;

pub use cpuidle::LinuxCpuidle;
pub use fault::*;
pub use neighbour::{Neighbour, YieldOn};
pub use workload::Workload;

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

pub(crate) use words;

/// A value with a name.
pub trait Word: Copy + PartialEq + fmt::Display + 'static {
    /// Every value, in the order of the documentation.
    const ALL: &'static [Self];
    /// The names, in the order of `ALL`.
    const NAMES: &'static [&'static str];

    /// Returns the value's name.
    fn name(self) -> &'static str;

    /// Returns the value called `text`.
    #[must_use]
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == text)
    }

    /// Whether `text` names this value or its whole family: `all`, `governor:all` for `governor:menu`, and
    /// `linux-all` for `linux-pipe`.
    #[must_use]
    fn is_meant_by(self, text: &str) -> bool {
        self.name() == text || text.strip_suffix("all") == Some(family(self.name()))
    }
}

/// Returns the prefix of the family of `name`, such as `governor:` or, for the workloads of another program,
/// `linux-`; empty if `name` has no family.
pub(crate) fn family(name: &str) -> &str {
    const LINUX: &str = "linux-";
    match name.split_once(':') {
        Some((family, _)) => &name[..=family.len()],
        None if name.starts_with(LINUX) => LINUX,
        None => "",
    }
}

words! {
    /// The reason why a cell ended.
    End {
        /// The cell's passes agree.
        Settled = "settled",
        /// The cell has all requested wake-ups.
        Samples = "samples",
        /// The cell has used up its time.
        Budget = "budget",
    }

    /// Which CPUs `ipistorm` calls.
    Calls {
        /// The CPU whose number is the caller's plus the offset.
        Single = "single",
        /// CPUs of the mask.
        Mask = "mask",
        /// All other CPUs.
        All = "all",
    }

    /// How a function call reaches a CPU that polls.
    CallBy {
        /// A separate bit requests the call: the CPU leaves the poll, runs the function, and does not schedule.
        Notify = "notify",
        /// The bit that makes the CPU schedule also requests the call: the CPU runs the function and schedules.
        Resched = "resched",
        /// An interrupt always requests the call.
        Ipi = "ipi",
        /// Like `resched`, but the scheduler does not search other CPUs for work if this CPU has none.
        SkipNewidle = "skip-newidle",
        /// Like `resched`, but the idle loop returns at once if there is nothing to run.
        SmIdle = "sm-idle",
    }

    /// How a governed CPU is made to poll.
    IdlePollBy {
        /// By a switch that the idle loop checks, as in the patch of January 2023. The CPU polls
        /// with YIELD, and the scheduler's tick continues.
        Posted = "posted",
        /// By a pointer to the CPU's idle function. The CPU polls with the best available
        /// instruction, without a tick, and checks every 100 us whether to continue.
        Pointer = "pointer",
    }

    /// How device times, or times between requests, are distributed.
    Spread {
        /// All times are equal.
        Fixed = "fixed",
        /// Times are uniformly distributed from half to one and a half times the mean.
        Uniform = "uniform",
        /// Times are exponentially distributed.
        Exponential = "exponential",
    }

    /// How shallow a CPU's idle states stay in the window opened by a request to a device.
    PsdLimit {
        /// The CPU stays in the shallowest state: it polls.
        Poll = "poll",
        /// The CPU stays in states that take no longer to leave than WFI.
        Wfi = "wfi",
    }

    /// Activity of the CPUs that take no part in what is measured.
    Noise {
        /// No noise: the CPUs halt.
        None = "none",
        /// The CPUs read and write more memory than caches hold.
        Stream = "stream",
        /// The CPUs send each other SGIs.
        Sgi = "sgi",
        /// The CPUs invalidate TLB entries of all CPUs.
        Tlbi = "tlbi",
    }

    /// Something that is on or off.
    Switch {
        /// The switch is on.
        On = "on",
        /// The switch is off.
        Off = "off",
    }

    /// Which CPUs are interrupted in workload `ipi`.
    Shape {
        /// No CPU, to show the cost of the measurement itself.
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
        /// No wait.
        None = "none",
        /// WFI and WFIT (HCR_EL2.TWI).
        Wfi = "wfi",
        /// WFE and WFET (HCR_EL2.TWE).
        Wfe = "wfe",
        /// WFI, WFIT, WFE and WFET.
        Both = "both",
    }

    /// How an SGI reaches the receiving vCPU.
    Deliver {
        /// The SGI traps at the sender and becomes a list register at the receiver.
        Inject = "inject",
        /// The guest owns the CPU interface (HCR_EL2.IMO=FMO=0); nothing exits.
        Direct = "direct",
    }

    /// Whether a waker interrupts a CPU that polls.
    Wake {
        /// The waker always sends an interrupt.
        Ipi = "ipi",
        /// The waker sends no interrupt if the receiver polls.
        Elide = "elide",
    }

    /// How EL2 chooses how long to poll before it halts for a trapped WFI.
    HostPoll {
        /// EL2 polls for the time of `host-poll-us`.
        Fixed = "fixed",
        /// EL2 grows and shrinks the limit by KVM's rules.
        Adaptive = "adaptive",
    }

    /// Whether a polling guest tells EL2 that it polls, so that EL2 does not poll as well.
    Hint {
        /// The guest does not tell EL2.
        Silent = "silent",
        /// The guest tells EL2 through a hypercall.
        Tell = "tell",
    }

    /// Whether caches hold the data of a wake-up.
    Cache {
        /// Caches hold whatever the previous wake-up left in them.
        Warm = "warm",
        /// Caches hold none of the data: it is cleaned and invalidated before each sample.
        Cold = "cold",
    }

    /// Barrier that a CPU executes before WFI.
    WfiBarrier {
        /// No barrier.
        None = "none",
        /// DSB SY, as in Linux: the CPU's earlier writes are complete when it halts.
        Dsb = "dsb",
    }

    /// The atomic instructions that the guest is compiled to use.
    Atomics {
        /// Load-exclusive and store-exclusive, in loops.
        Llsc = "llsc",
        /// The single instructions of FEAT_LSE.
        Lse = "lse",
    }

    /// Whether cells run once more with time stamps, to show where the time goes.
    Stages {
        /// Cells run once more with time stamps.
        On = "on",
        /// Cells run only without time stamps.
        Off = "off",
    }

    /// Layer below the guest's image.
    Under {
        /// The hypervisor.
        Rouse = "rouse",
        /// No layer: the guest runs at EL1 of the bare machine.
        None = "none",
        /// Xen, whose first domain is the guest.
        Xen = "xen",
        /// Bao, whose one virtual machine is the guest.
        Bao = "bao",
        /// KVM together with its host at EL2 (VHE).
        Kvm = "kvm",
        /// KVM with only its own part at EL2 and its host at EL1.
        KvmNvhe = "kvm-nvhe",
        /// Like `kvm-nvhe`, but it also keeps the host out of guests (pKVM).
        KvmProtected = "kvm-protected",
    }
}

impl Default for Under {
    /// Returns the layer assumed for results that do not name one.
    fn default() -> Self {
        Self::Rouse
    }
}

impl Under {
    /// Whether a hypervisor delivers interrupts to the guest.
    #[must_use]
    pub const fn injects(self) -> bool {
        match self {
            Self::None => false,
            Self::Rouse
            | Self::Xen
            | Self::Bao
            | Self::Kvm
            | Self::KvmNvhe
            | Self::KvmProtected => true,
        }
    }

    /// Whether the guest may own its CPU interface.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        match self {
            Self::None | Self::Rouse => true,
            Self::Xen | Self::Bao | Self::Kvm | Self::KvmNvhe | Self::KvmProtected => false,
        }
    }

    /// Whether the layer is a hypervisor other than Rouse. Such a layer's knobs are set at boot, and its
    /// virtual machine is the same on every board.
    #[must_use]
    pub const fn is_other(self) -> bool {
        self.vendor().is_some()
    }

    /// Returns the name of a hypervisor other than Rouse, as in `abi::hypervisor`, or as in the device
    /// tree's node `/hypervisor` if the hypervisor answers no call for its name.
    #[must_use]
    pub const fn vendor(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Rouse => None,
            Self::Xen => Some("Xen"),
            Self::Bao => Some("bao"),
            Self::Kvm | Self::KvmNvhe | Self::KvmProtected => Some("KVM"),
        }
    }

    /// Returns KVM's mode as a word of Linux's `kvm-arm.mode=`, if the layer is KVM; empty for the mode that
    /// Linux chooses.
    #[must_use]
    pub const fn kvm_mode(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Rouse | Self::Xen | Self::Bao => None,
            Self::Kvm => Some(""),
            Self::KvmNvhe => Some("nvhe"),
            Self::KvmProtected => Some("protected"),
        }
    }
}

impl Noise {
    /// Returns the fewest CPUs that the noise needs.
    #[must_use]
    pub const fn min_cpus(self) -> usize {
        match self {
            Self::None => 0,
            Self::Stream | Self::Tlbi => 1,
            Self::Sgi => 2,
        }
    }

    /// Returns the bytes of memory that the noise goes through: more than the shared caches of a server hold
    /// (32 MiB in Graviton3 and Altra, 36 in Graviton4).
    #[must_use]
    pub const fn memory(self) -> u64 {
        match self {
            Self::Stream => 64 << 20,
            Self::None | Self::Sgi | Self::Tlbi => 0,
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
    /// Whether a polling receiver gets no interrupt.
    #[must_use]
    pub const fn elides(self) -> bool {
        match self {
            Self::Ipi => false,
            Self::Elide => true,
        }
    }
}

impl Shape {
    /// Whether a CPU other than the sender waits.
    #[must_use]
    pub const fn has_receiver(self) -> bool {
        match self {
            Self::Dry | Self::Itself => false,
            Self::One | Self::Broadcast => true,
        }
    }
}
