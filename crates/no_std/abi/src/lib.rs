// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the interface between the two images and the packer: the hypercalls, the knobs, the
//! counters and the header of the embedded guest.
//!
//! The hypercalls follow the SMC calling convention as 64-bit fast calls of the vendor-specific
//! hypervisor service (DEN0028F, 6.1 and 6.2): function in x0, arguments from x1 on, results from
//! x0 on. The guest makes them with HVC.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Declares an enum with consecutive values and the list of all its variants.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// All variants, in order of value.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            /// Number of variants.
            pub const COUNT: usize = Self::ALL.len();
            /// Returns the variant's name in records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

mod call;
mod end;
pub mod exits;
mod knob;
pub mod monitor;
pub mod neighbour;
mod payload;
mod register_text;
mod time_log;
mod uid;
mod watch;

pub use call::Call;
pub use end::{End, Ended};
pub use knob::{Deliver, KnobValue, Trap};
pub use neighbour::{Neighbour, Shared};
pub use payload::{Extent, Images, NoPayload, PayloadHeader};
pub use register_text::{CellWords, ConsoleWords, Words};
pub use time_log::{TimeLog, TimeNote, event_of, event_word};
pub use uid::{hypervisor, uid};
pub use watch::{Noted, OperationLog, WatchPoint};

/// Asks which hypervisor this is; returns [`UID`] in w0 to w3.
pub const CALL_UID: u32 = 0x8600_ff01;
/// Asks the standard hypervisor service for its UID (DEN0028F, 6.1): Xen returns its own UID there,
/// and has no vendor-specific service.
pub const CALL_UID_STANDARD: u32 = 0x8500_ff01;
/// The UID of Rouse, in the byte order of the convention.
pub const UID: [u32; 4] = [0x7573_6f72, 0x2d65_2165, 0x9a1c_4be2, 0x31d7_05f3];
/// The immediate of the instruction with which the measuring guest makes [`Call::Counters`]; other
/// calls have 0. The hypervisor ignores it, but the syndrome contains it. So an emulator's list of
/// exceptions shows which exceptions happened between two readings of the counters.
pub const COUNTING: u16 = 1;
/// Makes [`Call::Evict`] clean EL2's code, constants and variables.
pub const EVICT_IMAGE: u64 = u64::MAX;
/// Makes [`Call::Evict`] invalidate the translations of both stages and of EL2, on every CPU, and
/// clean the memory that such a call uses: EL2's code and the memory of the calling CPU.
pub const EVICT_TRANSLATIONS: u64 = u64::MAX - 1;
/// Number of events that [`Call::Trace`] returns: as many as the convention's result registers hold.
pub const EVENTS: usize = 8;

/// Modes of [`Call::Audit`], which differ in their assumptions about the guest.
pub mod audit {
    /// No assumption: other vCPUs may interrupt the vCPU during the audit.
    pub const RUNNING: u64 = 0;
    /// No interrupt is outstanding: the vCPU has ended every interrupt, and no vCPU sends any.
    pub const QUIET: u64 = 1;
    /// Like [`QUIET`], but prints the mismatch.
    pub const QUIET_TOLD: u64 = 2;
    /// Like [`RUNNING`], but prints the mismatch.
    pub const RUNNING_TOLD: u64 = 3;
}

/// The call succeeded.
pub const SUCCESS: i64 = 0;
/// The knob is unknown, or the value is not valid for the knob.
pub const INVALID: i64 = -3;
/// The function is unknown (DEN0028F, 5.2).
pub const NOT_SUPPORTED: i64 = -1;

numbered! {
    /// Settings of a vCPU that can change while it runs; [`KnobValue`] has their values.
    Knob {
        /// The wait instructions that trap to EL2.
        Trap = "trap",
        /// The side, EL2 or guest, that owns the physical CPU interface.
        Deliver = "deliver",
        /// Number of counter ticks for which EL2 polls before it halts in a trapped WFI.
        HostPoll = "host-poll",
        /// Whether EL2 adapts the poll's limit, by KVM's rules and defaults, instead of using `HostPoll`.
        HostPollAdaptive = "host-poll-adaptive",
        /// Whether the guest itself polls; EL2 then does not poll.
        GuestPolls = "guest-polls",
        /// EL2's event stream: the EVNTEN, EVNTI and EVNTIS fields of
        /// CNTHCTL_EL2, in their bit positions.
        EventStream = "event-stream",
        /// Whether EL2 records events with time stamps.
        Trace = "trace",
        /// Whether EL2 checks the timer again when the vCPU acknowledges a timer interrupt that arrived while
        /// IRQs were masked; this costs one more exit for each such interrupt. A reset turns the check on.
        RecheckTimers = "recheck-timers",
        /// The work of the vCPU's neighbour, as [`Neighbour::encode`] encodes it.
        Neighbour = "neighbour",
        /// Number of ticks after which a vCPU that does not wait gives its CPU to its neighbour for
        /// the same time; 0 means that the vCPU keeps the CPU.
        Slice = "slice",
        /// Whether a trapped WFE gives the CPU to the neighbour, for at most a slice.
        YieldOnWfe = "yield-on-wfe",
    }
}

numbered! {
    /// Vectors of EL2 that do only the minimum that the architecture requires.
    Floor {
        /// Takes an HVC and returns.
        Empty = "empty",
        /// Carries out a write of ICC_SGI1R_EL1.
        Send = "send",
        /// Acknowledges, ends and lists an SGI.
        Receive = "receive",
        /// Carries out a WFI, and then acts like `receive`.
        Wait = "wait",
        /// Carries out a load of w1 from the distributor.
        Read = "read",
        /// Carries out one SMC with the arguments of CPU_ON. The target must be off.
        Start = "start",
    }
}

numbered! {
    /// EL2's counters per vCPU, beginning with the exits by cause.
    Counter {
        /// Trapped WFI or WFIT; includes the interrupt that ends the wait at EL2.
        Wfi = "exit.wfi",
        /// Trapped WFE or WFET.
        Wfe = "exit.wfe",
        /// Trapped write of an SGI register.
        Sgi = "exit.sgi",
        /// A physical interrupt that was taken as an exception, except the maintenance interrupt; includes EL2's
        /// own timer, and interrupts that were no longer pending when EL2 acknowledged them.
        Irq = "exit.irq",
        /// HVC.
        Hvc = "exit.hvc",
        /// SMC.
        Smc = "exit.smc",
        /// A trap of another system register.
        Sysreg = "exit.sysreg",
        /// Stage-2 abort on an emulated device.
        Mmio = "exit.mmio",
        /// Maintenance interrupt.
        Maintenance = "exit.maintenance",
        /// Any other exit.
        Other = "exit.other",
        /// Doorbells: interrupts with which EL2 made another CPU check its pending word.
        Kick = "el2.kick",
        /// Doorbells that were not sent because one was already on its way.
        KickSaved = "el2.kick-saved",
        /// Virtual interrupts written to list registers.
        Listed = "el2.listed",
        /// Trapped WFIs that polling at EL2 satisfied.
        PollHit = "el2.poll-hit",
        /// Trapped WFIs that polling at EL2 did not satisfy.
        PollMiss = "el2.poll-miss",
        /// Number of times that EL2 halted.
        Halt = "el2.halt",
        /// Halts that did not use the assembly path.
        SlowHalt = "el2.slow-halt",
    }
}

// SMCCC 1.2 returns at most 17 values besides the status.
const _: () = assert!(Counter::COUNT <= 17 && Info::COUNT <= 17);

numbered! {
    /// Facts about the machine that the guest can't read by itself.
    Info {
        /// Version of this interface.
        Version = "version",
        /// ICH_VTR_EL2.
        Vtr = "vtr",
        /// GICD_TYPER2 of the physical distributor.
        Typer2 = "typer2",
        /// GICD_PIDR2 of the physical distributor.
        Pidr2 = "pidr2",
        /// ID_AA64MMFR1_EL1, which holds TWED and VH.
        Mmfr1 = "mmfr1",
        /// Address of the hypervisor's image.
        Base = "base",
        /// Bytes of the hypervisor's memory for each vCPU: state and stack.
        PerVcpu = "per-vcpu",
        /// 1 if the machine has a deadline, so that [`Call::Cell`] is useful.
        Deadline = "deadline",
        /// SGIs that belong to the Secure world, as a bit mask: EL2 can inject them, but the guest can't
        /// get them directly.
        SecureSgis = "secure-sgis",
        /// SErrors that were pending when a CPU entered the hypervisor.
        SerrorsLeft = "serrors-left",
        /// SErrors for corrected errors that EL2 took after a CPU had entered the hypervisor.
        SerrorsCorrected = "serrors-corrected",
        /// SErrors that EL2 took after a CPU had entered the hypervisor, and that let the CPU continue.
        SerrorsRestartable = "serrors-restartable",
    }
}

numbered! {
    /// Events that EL2 records when it traces.
    Traced {
        /// No event yet.
        Nothing = "nothing",
        /// A synchronous exit; its data is the syndrome.
        Synchronous = "synchronous",
        /// An exit caused by an interrupt.
        Interrupt = "interrupt",
        /// A physical SGI was sent; its data is the value written.
        Sent = "sent",
        /// EL2 polls for the guest.
        Poll = "poll",
        /// EL2 halts for the guest.
        Halt = "halt",
        /// EL2's poll or halt has ended.
        Awake = "awake",
        /// EL2 returns to the guest.
        Resume = "resume",
    }
}

/// Version of the interface.
pub const VERSION: u64 = 1;
