// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why cells are skipped, in words that name the remedy.

use core::fmt;

use cpuidle::Broken;

use crate::arguments::{GIVEN_ALONE, GIVEN_HOST_POLL_US, GIVEN_TRAP};
use crate::{Cell, CpuSet, Noise, PREFIX, Pair, Trap, Under};

/// Properties of the machine that decide whether a cell can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of CPUs.
    pub cpus: usize,
    /// FEAT_WFxT: WFET and WFIT.
    pub wfxt: bool,
    /// FEAT_LSE in every CPU: atomic instructions.
    pub lse: bool,
    /// FEAT_ECV, which includes slower event streams.
    pub ecv: bool,
    /// Frequency of the counter, Hz.
    pub frequency: u64,
    /// Whether the guest is Linux with the program that measures it.
    pub linux: bool,
    /// Layer below the guest.
    pub under: Under,
    /// Settings that are fixed for a whole boot, if cells can't change them; other boots have
    /// other settings.
    pub given: Option<Given>,
    /// Whether CPUs run at the same time, and not one after another.
    pub cpus_at_once: bool,
    /// Whether data takes longer to load after it was cleaned out of the caches.
    pub caches: bool,
    /// Whether an event that arrives while an interrupt is acknowledged makes the machine lose the
    /// interrupt.
    pub event_loses_irq: bool,
    /// Whether the interrupt controller is a GICv2.
    pub gicv2: bool,
}

impl Machine {
    /// A machine under Rouse with four simultaneous CPUs, a 1 GHz counter and every feature, for callers
    /// that expand a plan without a real machine.
    pub const COMPLETE: Self = Self {
        cpus: 4,
        wfxt: true,
        lse: true,
        ecv: true,
        linux: false,
        frequency: 1_000_000_000,
        under: Under::Rouse,
        given: None,
        cpus_at_once: true,
        caches: true,
        event_loses_irq: false,
        gicv2: false,
    };
}

/// Knobs of a hypervisor that are set at its boot. In text form, the knobs are boot arguments of the
/// guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Waits of the guest that trap.
    pub trap: Trap,
    /// How long the hypervisor polls on a trapped WFI, in microseconds; 0 is off.
    pub host_poll_us: u32,
    /// Whether all boots of the run trap the same waits, so that this boot runs every cell to which
    /// the trap makes no difference.
    pub alone: bool,
}

impl Given {
    /// Whether `cell` wants these settings.
    #[must_use]
    pub fn is_wanted_by(&self, cell: &Cell) -> bool {
        self.traps_of(cell) && self.host_poll_us == cell.host_poll_us
    }

    /// Whether this boot traps exactly the waits that `cell` wants to trap.
    pub(crate) fn traps_of(&self, cell: &Cell) -> bool {
        let Self { trap, alone, .. } = *self;
        if !alone {
            return trap == cell.trap;
        }
        let wfi = trap.wfi() && cell.halts();
        let wfe = trap.wfe() && cell.uses_events();
        cell.trap.wfi() == wfi && cell.trap.wfe() == wfe
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trap,
            host_poll_us,
            alone,
        } = self;
        write!(
            f,
            "{PREFIX}{GIVEN_TRAP}={trap} {PREFIX}{GIVEN_HOST_POLL_US}={host_poll_us}"
        )?;
        match alone {
            true => write!(f, " {PREFIX}{GIVEN_ALONE}"),
            false => Ok(()),
        }
    }
}

/// The reason why a cell does not run. If there are several, the first in the order below is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum SkipReason {
    /// The workload belongs to another guest.
    OtherGuest {
        /// True if Linux runs, and the workload belongs to Rouse's own guest. False if Rouse's
        /// guest runs, and the workload belongs to Linux.
        linux: bool,
    },
    /// The workload is `stream`, but the wait is not an untrapped WFE: EL2 ends a trapped WFE at once.
    StreamAlone,
    /// The workload is `overshoot`, but the wait has no poll with its own limit.
    NoLimit,
    /// `elide` is requested, but neither the wait nor a state in the cell's table polls.
    NeverPolls,
    /// The requested trap is for an instruction that the wait does not execute.
    NothingTraps(Trap),
    /// The layer below traps a different set of waits than the cell wants; only a reboot of that layer can change this.
    TrapIsGiven(Trap),
    /// Shapes `dry` and `self` have no receiver that waits.
    ShapeNeedsBusy,
    /// The cell needs EL2, but the guest runs on the bare machine.
    NoHypervisor,
    /// The guest should own its CPU interface, but the layer below does not allow that.
    NotDirect(Under),
    /// The guest should own its CPU interface, but on the machine's GICv2, the guest can't send SGIs itself.
    NotDirectGicV2,
    /// The hypervisor would have to poll for a fixed time or know that the guest polls, but it
    /// follows only its own rules.
    OwnRules(Under),
    /// The hypervisor should poll, but it never does.
    NoHostPoll(Under),
    /// There should be a neighbour, but only Rouse provides one.
    NoNeighbour(Under),
    /// There should be a neighbour, but interrupts are delivered directly.
    NeighbourInjects,
    /// A WFE should give the CPU away, but nothing takes the CPU back.
    YieldsForEver,
    /// Only one of WFI and WFE should trap, but this hypervisor traps both or neither.
    TrapsTogether(Under),
    /// A wait should trap, but this hypervisor never traps waits.
    NeverTraps(Under),
    /// WFE without an event stream: nothing would make up for a lost event.
    Unbounded,
    /// The counter can't make an event stream near the requested period.
    StreamPeriod {
        /// The nearest possible period, in microseconds.
        nearest_us: u32,
    },
    /// The times of `standby` do not fit its table.
    States(Broken),
    /// There is no second CPU.
    OneCpu,
    /// The cell needs atomic instructions that a CPU lacks (FEAT_LSE).
    NoLse,
    /// The cell needs WFET, but the machine has no FEAT_WFxT.
    NoWfxt,
    /// Interrupts arrive at a CPU that waits for events, and the machine would lose some of these interrupts.
    LosesInterrupts,
    /// `cold` is requested, but no probe found that the machine models caches.
    NoCaches,
    /// A CPU that the plan names does not run.
    Offline {
        /// The dimension that names the CPU.
        key: &'static str,
        /// The CPU's number.
        cpu: usize,
        /// Number of CPUs.
        cpus: usize,
    },
    /// The workload runs a command, but none is named.
    NoCommand,
    /// The workload's wake-ups are periodic, but the requested period is 0.
    NoPeriod,
    /// The caller would call itself.
    OffsetToSelf {
        /// The offset.
        offset: u32,
        /// Number of CPUs.
        cpus: usize,
    },
    /// A caller is the only CPU in the mask.
    NoTarget,
    /// The list of callers is empty.
    NoCaller,
    /// Noise is requested, but CPUs take turns: noise can't disturb other CPUs, and its instructions would count
    /// in the samples.
    NoiseTakesTurns,
    /// Noise is requested, but the workload uses every CPU, however many there are.
    NoBystander,
    /// Noise is requested, but too few CPUs take no part.
    FewBystanders {
        /// The requested noise.
        noise: Noise,
        /// Number of CPUs that would be enough.
        cpus: usize,
    },
}

impl SkipReason {
    /// Returns the reason if a CPU of the set does not run.
    pub(crate) fn offline(key: &'static str, set: CpuSet, cpus: usize) -> Option<Self> {
        let cpu = set.beyond(cpus)?;
        Some(Self::Offline { key, cpu, cpus })
    }

    /// Returns the reason if a CPU of the pair does not run.
    pub(crate) fn offline_of(key: &'static str, pair: Pair, cpus: usize) -> Option<Self> {
        let cpu = pair.beyond(cpus)?;
        Some(Self::Offline { key, cpu, cpus })
    }

    /// Whether this reason takes precedence over `other`, which was found first.
    pub(crate) fn takes_precedence(&self, other: &Self) -> bool {
        core::mem::discriminant(self) != core::mem::discriminant(other) && self < other
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamPeriod { nearest_us } => {
                return write!(
                    f,
                    "event stream: the counter can't make that period; \
                     use --event-stream-us {nearest_us}"
                );
            }
            Self::OffsetToSelf { offset, cpus } => {
                return write!(
                    f,
                    "offset: {offset} maps a CPU onto itself on {cpus}; use --offset 1"
                );
            }
            Self::Offline { key, cpu, cpus } => {
                return write!(
                    f,
                    "{key}: CPU {cpu} is not online; use CPUs 0 to {}, or --cpus",
                    cpus - 1
                );
            }
            Self::NotDirect(under) => {
                return write!(
                    f,
                    "direct: {under} delivers interrupts by list registers only; use deliver inject"
                );
            }
            Self::NotDirectGicV2 => {
                "direct: with a GICv2, SGIs are sent through the distributor, which the hypervisor emulates; use \
                 deliver inject, or a machine with a GICv3"
            }
            Self::OwnRules(under) => {
                return write!(
                    f,
                    "host-poll: {under} polls by its own rules only; use host-poll adaptive, hint silent"
                );
            }
            Self::TrapIsGiven(trap) => {
                return write!(
                    f,
                    "trap: what is below was started so that {} traps, and this cell wants it otherwise; start it with \
                     kvm-arm.wfi_trap_policy and kvm-arm.wfe_trap_policy of the other value, trap or notrap",
                    match trap {
                        Trap::None => "nothing",
                        Trap::Wfi => "wfi",
                        Trap::Wfe => "wfe",
                        Trap::Both => "both wfi and wfe",
                    }
                );
            }
            Self::NoHostPoll(under) => {
                return write!(
                    f,
                    "host-poll: {under} does not poll before it halts; use host-poll-us 0"
                );
            }
            Self::NoNeighbour(under) => {
                return write!(
                    f,
                    "neighbour: under {under} there is none; use --under rouse, or neighbour none"
                );
            }
            Self::NeverTraps(under) => {
                return write!(f, "trap: {under} traps neither WFI nor WFE; use trap none");
            }
            Self::TrapsTogether(under) => {
                return write!(f, "trap: {under} traps WFE and WFI together; use trap both");
            }
            Self::States(why) => return write!(f, "states: {why}"),
            Self::FewBystanders { noise, cpus } => {
                return write!(
                    f,
                    "noise: for {noise} too few CPUs take no part in what is measured; \
                     use --cpus {cpus} or more"
                );
            }
            Self::OtherGuest { linux: true } => {
                "workload: Rouse's own guest has it, and Linux is the guest; use --workload linux-pipe, or leave --guest out"
            }
            Self::OtherGuest { linux: false } => {
                "workload: it is a program's on Linux; use --guest debian, or --guest IMAGE"
            }
            Self::NoCommand => "command: linux-exec runs one; use --exec COMMAND",
            Self::NoiseTakesTurns => {
                "noise: CPUs run one after another here, so it disturbs nothing, and its instructions \
                 would be in the samples; use --metric time"
            }
            Self::NeighbourInjects => {
                "neighbour: its turn ends with an interrupt that comes to EL2, and direct delivery has none come there; \
                 use deliver inject"
            }
            Self::YieldsForEver => {
                "yield-on: no interrupt says that the event came, so without slices nothing takes the CPU back; \
                 use --slice-us 4000, or yield-on none"
            }
            Self::NoBystander => {
                "noise: every CPU takes part in this workload; use workload pingpong, ipi (self or one), \
                 stream or overshoot, and --cpus 4"
            }
            Self::NoPeriod => "gap-us: this workload wakes up by time; use --gap-us 1000",
            Self::NoTarget => "mask: a caller has no other CPU in it; use --mask all",
            Self::StreamAlone => {
                "stream: only an untrapped WFE waits for nothing but the event stream; \
                 use wait wfe, trap none"
            }
            Self::NoLimit => {
                "overshoot: this wait has no poll with a fixed limit; \
                 use wait spin, yield, wfe, wfe-sev, wfet or poll-wfi"
            }
            Self::NoCaller => "cpulist: no CPU is in it; use --cpulist 0",
            Self::NeverPolls => "elide: this wait, or its table of states, never polls; use wake ipi",
            Self::NothingTraps(Trap::Wfe) => {
                "trap: this wait executes no WFE; use wait wfe, wfet or poll-wfi, or trap none"
            }
            Self::NothingTraps(Trap::Wfi) => {
                "trap: this wait executes no WFI; use wait wfi or poll-wfi, or trap none"
            }
            Self::NothingTraps(_) => "trap: this wait executes neither WFI nor WFE; use trap none",
            Self::OneCpu => "one CPU only; use --cpus 2 or more",
            Self::ShapeNeedsBusy => "shape: no CPU waits; use wait busy",
            Self::Unbounded => {
                "wfe without event stream has no bound; use --event-stream-us 100, or wait wfet"
            }
            Self::NoLse => {
                "lse: the CPU has no LSE atomics (ID_AA64ISAR0_EL1.Atomic = 0); use atomics llsc"
            }
            Self::NoWfxt => "wfet: this CPU has no FEAT_WFxT; use wait wfe",
            Self::LosesInterrupts => {
                "this machine loses an interrupt that is acknowledged while an event comes; \
                 use wake elide, or another CPU model"
            }
            Self::NoCaches => {
                "cold: no load was found to be slower after its line was cleaned (caches_modelled); \
                 use cache warm"
            }
            Self::NoHypervisor => "needs EL2, and runs under none; use trap none, deliver direct",
        })
    }
}
