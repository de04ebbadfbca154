// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two images and the packer agree on: the hypercalls, the knobs,
//! the counters and the header of the embedded guest.
//!
//! The hypercalls follow the SMC calling convention as 64-bit fast calls of
//! the vendor-specific hypervisor service (DEN0028F, 6.1 and 6.2): function in
//! x0, arguments from x1, results from x0. They are made with HVC.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod knob;
mod time_log;

pub use knob::{Deliver, KnobValue, Trap};
pub use time_log::{TimeLog, TimeNote, event_of, event_word};

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Asks which hypervisor this is; answers [`UID`] in w0 to w3.
pub const CALL_UID: u32 = 0x8600_ff01;
/// The answer of Rouse, in the byte order of the convention.
pub const UID: [u32; 4] = [0x7573_6f72, 0x2d65_2165, 0x9a1c_4be2, 0x31d7_05f3];
/// Sets knob x1 of the calling vCPU to x2; x0 is [`SUCCESS`] or [`INVALID`].
pub const CALL_SET: u32 = 0xc600_0001;
/// x0 = [`SUCCESS`], x1.. = the [`Counter`]s of the calling vCPU since it
/// started. The call does not count itself.
pub const CALL_COUNTERS: u32 = 0xc600_0002;
/// The immediate of the instruction by which the measuring guest makes [`CALL_COUNTERS`],
/// others having 0. It means nothing to the hypervisor. But it is in the syndrome, so a list of
/// exceptions that an emulator writes shows from where to where the counters counted.
pub const COUNTING: u16 = 1;
/// x0 = [`SUCCESS`], x1.. = [`Info`].
pub const CALL_INFO: u32 = 0xc600_0003;
/// Ends the machine with exit status x1, which reaches the shell.
pub const CALL_EXIT: u32 = 0xc600_0004;

/// Watches [`WatchPoint`]s at guest physical address x1, one per vCPU, and
/// stops the machine if nothing moves for x2 ticks;
/// x2 = 0 ends it. x0 is [`SUCCESS`] or [`INVALID`].
pub const CALL_WATCH: u32 = 0xc600_0005;
/// x0 = [`SUCCESS`] or [`INVALID`]; x1.. = the last [`EVENTS`] events of vCPU x1
/// (its number in the device tree) as pairs of time (virtual count) and [`Traced`], the newest first.
pub const CALL_TRACE: u32 = 0xc600_0006;
/// Has EL2 note what it traces of the calling vCPU in the [`TimeLog`] at guest physical
/// address x1 as well, each as an [`event_word`]; x1 = 0 ends that, and so does turning the vCPU
/// off. x0 is [`SUCCESS`] or [`INVALID`].
pub const CALL_LOG: u32 = 0xc600_0007;
/// Compares what EL2 keeps of the calling vCPU's interrupts with its list
/// registers; x1 is one of [`audit`]. x0 is [`SUCCESS`], or [`INVALID`] where they
/// contradict each other or the guest.
pub const CALL_AUDIT: u32 = 0xc600_0008;
/// Prints the state of every CPU and ends the machine with exit status x1.
pub const CALL_DUMP: u32 = 0xc600_0009;
/// Events that [`CALL_TRACE`] answers: what the convention's registers hold.
pub const EVENTS: usize = 8;

/// Where a vCPU shows that it makes progress.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct WatchPoint {
    /// Wake-ups that it has received.
    pub progress: AtomicU64,
    /// Wake-ups that were sent to it and that it has not received.
    pub waiting: AtomicU64,
    /// Guest physical address of its request word, 32 bits.
    pub request: AtomicU64,
    /// Guest physical address of its [`OperationLog`]; 0 is none.
    pub log: AtomicU64,
}

/// What [`CALL_AUDIT`] may expect of the guest.
pub mod audit {
    /// Nothing: other vCPUs interrupt it meanwhile.
    pub const RUNNING: u64 = 0;
    /// Nothing is owed to it: it has ended every interrupt, and nobody sends.
    pub const QUIET: u64 = 1;
    /// As [`QUIET`]; and what is wrong is to be printed.
    pub const QUIET_TOLD: u64 = 2;
    /// As [`RUNNING`]; and what is wrong is to be printed.
    pub const RUNNING_TOLD: u64 = 3;
}

/// The last operations of a vCPU in the guest's own words, for dumps. The vCPU
/// alone notes.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct OperationLog {
    count: AtomicU64,
    entries: [[AtomicU64; 5]; OperationLog::KEPT],
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Virtual count when it began, ticks.
    pub time: u64,
    /// Its name, padded with zeros.
    pub name: [u8; 16],
    /// Its number among those of the vCPU.
    pub step: u64,
    /// What it was done with.
    pub data: u64,
}

impl Default for OperationLog {
    fn default() -> Self {
        Self::new()
    }
}

impl OperationLog {
    /// Operations that are kept.
    pub const KEPT: usize = 16;

    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            entries: [const { [const { AtomicU64::new(0) }; 5] }; Self::KEPT],
        }
    }

    /// Notes an operation; of `name` the first 16 bytes are kept.
    pub fn note(&self, time: u64, name: &str, step: u64, data: u64) {
        let mut bytes = [0; 16];
        let kept = name.len().min(bytes.len());
        bytes[..kept].copy_from_slice(&name.as_bytes()[..kept]);
        let name = u128::from_le_bytes(bytes);
        let count = self.count.load(Relaxed);
        let words = [time, name as u64, (name >> 64) as u64, step, data];
        let entry = &self.entries[count as usize % Self::KEPT];
        for (place, word) in entry.iter().zip(words) {
            place.store(word, Relaxed);
        }
        self.count.store(count + 1, Release);
    }

    /// Those that are kept, the oldest first. Whole only while the vCPU notes
    /// none.
    pub fn iter(&self) -> impl Iterator<Item = Noted> + '_ {
        let count = self.count.load(Acquire);
        let kept = count.min(Self::KEPT as u64);
        (count - kept..count).map(|number| {
            let entry = &self.entries[number as usize % Self::KEPT];
            let [time, low, high, step, data] = [0, 1, 2, 3, 4].map(|n| entry[n].load(Relaxed));
            let name = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
            Noted {
                time,
                name,
                step,
                data,
            }
        })
    }
}

/// It was done.
pub const SUCCESS: i64 = 0;
/// Unknown knob, or a value that it can't take.
pub const INVALID: i64 = -3;
/// Unknown function (DEN0028F, 5.2).
pub const NOT_SUPPORTED: i64 = -1;

/// Declares an enum with consecutive values and its list.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// Every one, in order of value.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();
            /// Its name in records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

numbered! {
    /// What can be set per vCPU while it runs; [`KnobValue`] says how.
    Knob {
        /// Which waits trap.
        Trap = "trap",
        /// Who owns the CPU interface.
        Deliver = "deliver",
        /// Ticks of the counter that EL2 polls before it halts in a trapped WFI.
        HostPoll = "host-poll",
        /// Whether the limit adapts instead, by KVM's rules and defaults.
        HostPollAdaptive = "host-poll-adaptive",
        /// Whether the guest polls, so that EL2 does not.
        GuestPolls = "guest-polls",
        /// EL2's event stream: the EVNTEN, EVNTI and EVNTIS fields of
        /// CNTHCTL_EL2, in their places.
        EventStream = "event-stream",
        /// Whether events are noted with time stamps.
        Trace = "trace",
        /// Whether EL2 looks again at the timer of an interrupt that came while IRQs were
        /// masked, when the vCPU acknowledges it: an exit more for each. On after a reset.
        RecheckTimers = "recheck-timers",
    }
}

numbered! {
    /// What EL2 counts per vCPU. Exits by cause first.
    Counter {
        /// Trapped WFI or WFIT; what ends its wait at EL2 is part of it.
        Wfi = "exit.wfi",
        /// Trapped WFE or WFET.
        Wfe = "exit.wfe",
        /// Trapped write of an SGI register.
        Sgi = "exit.sgi",
        /// Physical interrupt that came as an exception, maintenance not included: also EL2's own
        /// timer, and one that was gone when it was acknowledged.
        Irq = "exit.irq",
        /// HVC.
        Hvc = "exit.hvc",
        /// SMC.
        Smc = "exit.smc",
        /// Other trapped system register.
        Sysreg = "exit.sysreg",
        /// Stage-2 abort on an emulated device.
        Mmio = "exit.mmio",
        /// Maintenance interrupt.
        Maintenance = "exit.maintenance",
        /// Anything else.
        Other = "exit.other",
        /// Interrupts by which EL2 told another CPU of a letter in its mailbox.
        Kick = "el2.kick",
        /// Those that were not sent because one was on its way.
        KickSaved = "el2.kick-saved",
        /// Virtual interrupts listed.
        Listed = "el2.listed",
        /// Trapped WFIs that polling at EL2 satisfied.
        PollHit = "el2.poll-hit",
        /// Trapped WFIs that polling at EL2 did not satisfy.
        PollMiss = "el2.poll-miss",
        /// Times that EL2 halted.
        Halt = "el2.halt",
    }
}

// SMCCC 1.2 returns at most 17 values after the status.
const _: () = assert!(Counter::COUNT <= 17 && Info::COUNT <= 17);

numbered! {
    /// What the guest can't read of the machine by itself.
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
        /// 1: the machine is described by ACPI tables; 0: by a device tree.
        Acpi = "acpi",
        /// Bytes that the hypervisor has for each vCPU: state and stack.
        PerVcpu = "per-vcpu",
    }
}

numbered! {
    /// What EL2 notes when it traces.
    Traced {
        /// Nothing yet.
        Nothing = "nothing",
        /// A synchronous exit; its data is the syndrome.
        Synchronous = "synchronous",
        /// An exit by interrupt.
        Interrupt = "interrupt",
        /// A physical SGI was sent; its data is the value written.
        Sent = "sent",
        /// EL2 polls for the guest.
        Poll = "poll",
        /// EL2 halts for the guest.
        Halt = "halt",
        /// What it polled or halted for is there.
        Awake = "awake",
        /// Back to the guest.
        Resume = "resume",
    }
}

/// Version of the interface.
pub const VERSION: u64 = 1;

/// How a guest ended the machine, where it reported no exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// PSCI SYSTEM_OFF.
    Off,
    /// PSCI SYSTEM_RESET.
    Reset,
    /// PSCI CPU_OFF of the last CPU that was on.
    NoCpu,
}

impl End {
    /// All of them, with their names.
    const ALL: [(Self, &'static str); 3] = [
        (Self::Off, "off"),
        (Self::Reset, "reset"),
        (Self::NoCpu, "no CPU on"),
    ];
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(end, _)| end == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// How and where: the console's last line, behind `rouse: `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub how: End,
    /// The number of the vCPU that did it.
    pub vcpu: usize,
    /// Its affinity, as PSCI names CPUs.
    pub mpidr: u64,
}

impl Ended {
    const STARTS: &str = "guest ended: ";

    /// Reads a line of the console, from behind `rouse: `.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (how, by) = line.strip_prefix(Self::STARTS)?.split_once(" by vCPU ")?;
        let (vcpu, mpidr) = by
            .trim_ascii_end()
            .strip_suffix(')')?
            .split_once(" (MPIDR 0x")?;
        Some(Self {
            how: End::ALL.iter().find(|(_, name)| *name == how)?.0,
            vcpu: vcpu.parse().ok()?,
            mpidr: u64::from_str_radix(mpidr, 16).ok()?,
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, vcpu, mpidr } = self;
        write!(f, "{}{how} by vCPU {vcpu} (MPIDR {mpidr:#x})", Self::STARTS)
    }
}

/// Header in front of the guest's image, padded to [`PayloadHeader::SIZE`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PayloadHeader {
    /// [`PayloadHeader::MAGIC`].
    pub magic: u64,
    /// Bytes of the image that follows.
    pub length: u64,
}

impl PayloadHeader {
    /// "RSEPAYLD", little endian.
    pub const MAGIC: u64 = 0x444c_5941_5045_5352;
    /// Bytes from the header to the image: a page.
    pub const SIZE: usize = 4096;

    /// Bytes of the image behind the header, which must be `room` at most.
    ///
    /// # Errors
    /// [`NoPayload`] says why there is none.
    pub const fn image(&self, room: u64) -> Result<u64, NoPayload> {
        match self {
            Self { magic, .. } if *magic != Self::MAGIC => Err(NoPayload::Magic),
            Self { length, .. } if *length == 0 || *length > room => {
                Err(NoPayload::Length(*length))
            }
            Self { length, .. } => Ok(*length),
        }
    }
}

/// Why there is no image behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// It is no header: nothing was packed.
    Magic,
    /// Its length is this, which is nothing, or more than there is room for.
    Length(u64),
}

impl fmt::Display for NoPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("no guest in this image"),
            Self::Length(length) => write!(f, "a guest of {length:#x} bytes, which is no length"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_reads_back() {
        for (how, _) in End::ALL {
            let (vcpu, mpidr) = (63, 0x1_0000_0203);
            let ended = Ended { how, vcpu, mpidr };
            assert_eq!(Ended::parse(&ended.to_string()), Some(ended));
        }
        for other in [
            "guest ended: off",
            "guest ended: x by vCPU 0 (MPIDR 0x0)",
            "exit status 0",
        ] {
            assert_eq!(Ended::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_log_keeps_the_newest_in_order() {
        let log = OperationLog::new();
        assert_eq!(log.iter().count(), 0);
        for step in 0..20 {
            log.note(step * 10, "a-name-of-more-than-sixteen", step, !step);
        }
        let steps: Vec<u64> = log.iter().map(|noted| noted.step).collect();
        assert_eq!(steps, (4..20).collect::<Vec<u64>>());
        let last = log.iter().last().unwrap();
        assert_eq!((last.time, last.data), (190, !19));
        assert_eq!(&last.name, b"a-name-of-more-t");
    }
}
