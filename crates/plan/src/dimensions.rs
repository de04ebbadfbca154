// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dimensions: everything that tells one cell from another, once.
//!
//! An entry says what its values are, what is the default, when the dimension
//! applies and what contradicts it, and how options, records, results and charts
//! call it. Options, boot arguments, the product of the lists, records, results,
//! columns and charts follow from the table.

mod derive;
mod info;

pub use info::{Info, Kind, Place, Show};

use core::fmt;

use crate::text::Error;
use crate::value::{Dimension, Value};
use crate::words::*;
use crate::{CpuSet, SkipReason, Wait};
use derive::{dimensions, is_text, or};

/// Longest limit or gap, microseconds: ten seconds.
const MAX_US: u32 = 10_000_000;

dimensions! {
    /// What is run.
    workload: Workload {
        key: "workload",
        help: "What is run: ipi, pingpong, ipistorm, messaging, notify, io, timer, idle, stream (the period of the \
               event stream), overshoot (polls that end at their limit)",
        kind: Kind::Words,
        default: [Workload::Ipi, Workload::Pingpong],
        neutral: Workload::Ipi,
        turn: 0,
        place: Place::Always,
        show: Show::Title,
        applies: |_| true,
        contradicts: |cell, machine| {
            let stream = cell.workload == Workload::Stream;
            if stream && (cell.wait != Wait::Wfe || cell.trap.wfe()) {
                Some(SkipReason::StreamAlone)
            } else if cell.workload == Workload::Overshoot && !cell.wait.keeps_a_limit() {
                Some(SkipReason::NoLimit)
            } else {
                (cell.needs_second() && machine.cpus < 2).then_some(SkipReason::OneCpu)
            }
        },
    }
    /// Which CPUs are interrupted; `one` for workloads that have no shapes.
    shape: Shape {
        key: "shape",
        help: "What workload ipi interrupts: dry (nothing), self, one, broadcast",
        kind: Kind::Words,
        default: *Shape::ALL,
        neutral: Shape::One,
        turn: 1,
        place: Place::Always,
        show: Show::IfDifferent,
        applies: |cell| cell.workload == Workload::Ipi,
        contradicts: |cell, _| {
            let waits = cell.shape.has_receiver() || cell.wait == Wait::Busy;
            (!waits).then_some(SkipReason::ShapeNeedsBusy)
        },
    }
    /// How the receiver waits.
    wait: Wait {
        key: "wait",
        help: "How the receiver waits: {words} (these are all), or the idle states by governor:NAME, with NAME \
               {governor}, or all",
        kind: Kind::Words,
        default: [Wait::Busy, Wait::Spin, Wait::Wfi, Wait::Wfe, Wait::Wfet, Wait::PollWfi],
        neutral: Wait::Busy,
        turn: 3,
        place: Place::Always,
        show: Show::Column,
        applies: |_| true,
        contradicts: |cell, machine| {
            if cell.wait.needs_wfxt() && !machine.wfxt {
                Some(SkipReason::NoWfxt)
            } else {
                let interrupted = !cell.wake.elides() && !cell.workload.is_alone();
                let lost = machine.event_loses_irq && cell.wait.uses_events() && interrupted;
                lost.then_some(SkipReason::LosesInterrupts)
            }
        },
    }
    /// What traps.
    trap: Trap {
        key: "trap",
        help: "Which waits of the guest trap: none, wfi, wfe, both",
        kind: Kind::Words,
        default: [Trap::None, Trap::Wfi],
        neutral: Trap::None,
        turn: 4,
        place: Place::Always,
        show: Show::Column,
        applies: |_| true,
        contradicts: |cell, machine| {
            let traps = cell.trap != Trap::None;
            let wfi = cell.trap.wfi() && cell.halts();
            let wfe = cell.trap.wfe() && cell.wait.uses_events();
            if traps && !wfi && !wfe {
                Some(SkipReason::NothingTraps)
            } else {
                (traps && !machine.hypervisor).then_some(SkipReason::NoHypervisor)
            }
        },
    }
    /// How SGIs are delivered.
    deliver: Deliver {
        key: "deliver",
        help: "How interrupts reach the receiver: inject (by the hypervisor), direct (the guest owns the interface)",
        kind: Kind::Words,
        default: *Deliver::ALL,
        neutral: Deliver::Inject,
        turn: 5,
        place: Place::Always,
        show: Show::Column,
        applies: |_| true,
        contradicts: |cell, machine| {
            let needed = !cell.deliver.is_direct() && !machine.hypervisor;
            needed.then_some(SkipReason::NoHypervisor)
        },
    }
    /// Whether polling receivers are interrupted.
    wake: Wake {
        key: "wake",
        help: "Whether a polling receiver is interrupted: ipi (always), elide (no)",
        kind: Kind::Words,
        default: *Wake::ALL,
        neutral: Wake::Ipi,
        turn: 6,
        place: Place::Always,
        show: Show::Column,
        applies: |cell| !cell.workload.is_alone(),
        contradicts: |cell, _| {
            let never = cell.wake.elides() && !cell.wait.polls();
            never.then_some(SkipReason::NeverPolls)
        },
    }
    /// Guest poll limit in microseconds; 0 where none applies.
    poll_limit_us: u32 {
        key: "poll-limit-us",
        help: "How long the guest polls before WFI, microseconds",
        kind: Kind::Numbers,
        range: (1, MAX_US),
        default: [100],
        neutral: 0,
        turn: 7,
        place: Place::Always,
        show: Show::Sweep { column: "limit", chart: "Poll limit", preferred: 100 },
        applies: |cell| cell.has_limit(),
        own_default: |cell| cell.wait.own_limit_us(),
    }
    /// EL2 poll limit in microseconds; 0 is off, or does not apply.
    host_poll_us: u32 {
        key: "host-poll-us",
        help: "How long the hypervisor polls on a trapped WFI, microseconds; 0 is off",
        kind: Kind::Numbers,
        range: (0, MAX_US),
        default: [0, 50],
        neutral: 0,
        turn: 8,
        place: Place::Always,
        show: Show::Sweep { column: "host", chart: "Host poll limit", preferred: 0 },
        applies: |cell| cell.traps_wfi(),
    }
    /// How EL2 chooses its limit; `fixed` where it does not poll.
    host_poll: HostPoll {
        key: "host-poll",
        help: "How the hypervisor chooses that limit: fixed, adaptive (by KVM's rules)",
        kind: Kind::Words,
        default: [HostPoll::Fixed],
        neutral: HostPoll::Fixed,
        turn: 10,
        place: Place::Unusual,
        show: Show::Special("EL2"),
        applies: |cell| cell.host_polls(),
    }
    /// Whether the guest says that it polls; `silent` where it makes no difference.
    hint: Hint {
        key: "hint",
        help: "Whether a guest that polls tells the hypervisor, which then does not: silent, tell",
        kind: Kind::Words,
        default: [Hint::Silent],
        neutral: Hint::Silent,
        turn: 11,
        place: Place::Unusual,
        show: Show::Special("hint"),
        applies: |cell| cell.host_polls() && cell.wait.limited(),
    }
    /// Event-stream period in microseconds; 0 is off, or does not apply.
    event_stream_us: u32 {
        key: "event-stream-us",
        help: "Period of the event stream, microseconds; 0 is off",
        kind: Kind::Numbers,
        range: (0, MAX_US),
        default: [100],
        neutral: 0,
        turn: 9,
        place: Place::Always,
        show: Show::Sweep { column: "stream", chart: "Event-stream period", preferred: 100 },
        applies: |cell| cell.wait.uses_events(),
        contradicts: |cell, machine| {
            if cell.wait.needs_stream() && cell.event_stream_us == 0 {
                Some(SkipReason::Unbounded)
            } else {
                let nearest = cell.off_period(machine);
                nearest.map(|nearest_us| SkipReason::StreamPeriod { nearest_us })
            }
        },
    }
    /// Pause between two wake-ups in microseconds; the period of `timer` and `idle`.
    gap_us: u32 {
        key: "gap-us",
        aliases: &["delay-us"],
        help: "Pause between two wake-ups, microseconds; the period of timer (default 1000) and idle (10000)",
        kind: Kind::Numbers,
        range: (0, MAX_US),
        default: [0],
        neutral: 0,
        turn: 2,
        place: Place::Always,
        show: Show::Sweep { column: "gap", chart: "Gap", preferred: 0 },
        applies: |cell| cell.workload != Workload::Stream,
        own_default: |cell| cell.workload.period_us(),
        contradicts: |cell, _| {
            let none = cell.workload.period_us().is_some() && cell.gap_us == 0;
            none.then_some(SkipReason::NoPeriod)
        },
    }
    /// The barrier before WFI; `none` where there is no WFI.
    wfi_barrier: WfiBarrier {
        key: "wfi-barrier",
        help: "The barrier before each WFI of the guest: none, dsb (DSB SY, as in Linux's idle loop)",
        kind: Kind::Words,
        default: [WfiBarrier::None],
        neutral: WfiBarrier::None,
        turn: 11,
        place: Place::Unusual,
        show: Show::Special("WFI behind"),
        applies: |cell| cell.halts(),
    }
    /// Whether caches hold what a wake-up uses; `warm` where samples are not made one by one.
    cache: Cache {
        key: "cache",
        help: "Whether caches hold what a wake-up uses (ipi, pingpong): warm (as the one before left them), cold \
               (cleaned and invalidated before each sample; needs a machine that models caches)",
        kind: Kind::Words,
        default: [Cache::Warm],
        neutral: Cache::Warm,
        turn: 11,
        place: Place::Unusual,
        show: Show::Special("caches"),
        applies: |cell| !cell.workload.has_tasks() && !cell.workload.is_alone(),
        contradicts: |cell, machine| {
            let unseen = cell.cache == Cache::Cold && !machine.caches;
            unseen.then_some(SkipReason::NoCaches)
        },
    }
    /// Groups of tasks, as `perf bench sched messaging -g` has them; pairs for `notify`.
    groups: u32 {
        key: "groups",
        help: "Groups of messaging, pairs of notify, 1 to 16 (default 1)",
        kind: Kind::Numbers,
        range: (1, 16),
        default: [1],
        neutral: 1,
        turn: 24,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.workload.has_groups(),
    }
    /// Which CPUs `ipistorm` calls.
    calls: Calls {
        key: "calls",
        help: "Which CPUs ipistorm calls: single (the CPU at --offset), mask (those of --mask), all",
        kind: Kind::Words,
        default: [Calls::Single],
        neutral: Calls::Single,
        turn: 23,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms(),
    }
    /// A call of one CPU goes to the caller's number plus this.
    offset: u32 {
        key: "offset",
        help: "A call of one CPU goes to the caller's number plus this (default 1)",
        kind: Kind::Numbers,
        range: (0, 63),
        default: [1],
        neutral: 1,
        turn: 22,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms() && cell.calls == Calls::Single,
        contradicts: |cell, machine| {
            let (offset, cpus) = (cell.offset, machine.cpus);
            let to_self = (offset as usize).is_multiple_of(cpus);
            to_self.then_some(SkipReason::OffsetToSelf { offset, cpus })
        },
    }
    /// CPUs that a call to many goes to.
    mask: CpuSet {
        key: "mask",
        help: "CPUs that a call to many goes to (default all)",
        kind: Kind::Cpus,
        default: [CpuSet::ALL],
        neutral: CpuSet::ALL,
        turn: 21,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms() && cell.calls == Calls::Mask,
        contradicts: |cell, machine| {
            let nobody = cell.calls_itself_only(machine.cpus);
            SkipReason::offline("mask", cell.mask, machine.cpus)
                .or(nobody.then_some(SkipReason::NobodyToCall))
        },
    }
    /// CPUs that call, or that wake up by time.
    cpulist: CpuSet {
        key: "cpulist",
        help: "CPUs that call (ipistorm; default 0), or wake up by time (timer, idle; default all)",
        kind: Kind::Cpus,
        default: [CpuSet::ALL],
        neutral: CpuSet::ALL,
        turn: 20,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms() || cell.workload.period_us().is_some(),
        own_default: |cell| cell.storms().then_some(CpuSet::FIRST),
        contradicts: |cell, machine| {
            let nobody = cell.cpulist.is_empty().then_some(SkipReason::NobodyCalls);
            SkipReason::offline("cpulist", cell.cpulist, machine.cpus).or(nobody)
        },
    }
    /// The caller waits until the function has run.
    call_wait: Switch {
        key: "call-wait",
        help: "Whether the caller waits until the function has run: on, off",
        kind: Kind::Words,
        default: [Switch::On],
        neutral: Switch::On,
        turn: 19,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms(),
    }
    /// How a call reaches a CPU that polls; where every wake-up is an interrupt there
    /// is nothing to choose.
    call_by: CallBy {
        key: "call-by",
        help: "How a call reaches a CPU that polls: notify, resched, ipi, skip-newidle, sm-idle",
        kind: Kind::Words,
        default: [CallBy::Notify],
        neutral: CallBy::Notify,
        turn: 18,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.storms(),
        forced: |cell| (!cell.wake.elides()).then_some(CallBy::Ipi),
    }
    /// How long the device of workload `io` takes, microseconds.
    device_us: u32 {
        key: "device-us",
        help: "How long the device of io takes, microseconds (default 20)",
        kind: Kind::Numbers,
        range: (1, 1_000_000),
        default: [20],
        neutral: 20,
        turn: 17,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.workload == Workload::Io,
    }
    /// How its times are distributed.
    spread: Spread {
        key: "spread",
        help: "How its times are distributed: fixed, uniform, exponential",
        kind: Kind::Words,
        default: [Spread::Fixed],
        neutral: Spread::Fixed,
        turn: 16,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.workload == Workload::Io,
    }
    /// Which CPU it interrupts.
    completion: Completion {
        key: "completion",
        help: "Which CPU it interrupts: same (that submitted), other",
        kind: Kind::Words,
        default: [Completion::Same],
        neutral: Completion::Same,
        turn: 15,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.workload == Workload::Io,
    }
    /// For how long after a request to a device a CPU stays shallow, milliseconds; 0 is off.
    psd_ms: u32 {
        key: "psd-ms",
        help: "How long a governed CPU stays shallow after it asked a device, milliseconds; 0 is off",
        kind: Kind::Numbers,
        range: (0, 1000),
        default: [0],
        neutral: 0,
        turn: 14,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.workload == Workload::Io && cell.wait.governor().is_some(),
    }
    /// Exit latency of the standby state, microseconds; 0 is without that state.
    standby_us: u32 {
        key: "standby-us",
        help: "Exit latency of the governors' standby state, microseconds; 0 is without it (default 100)",
        kind: Kind::Numbers,
        range: (0, 10_000),
        default: [100],
        neutral: 0,
        turn: 13,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.wait.governor().is_some(),
    }
    /// CPUs that poll whatever the governor says.
    idle_poll: CpuSet {
        key: "idle-poll",
        help: "Governed CPUs that poll whatever the governor says (default none)",
        kind: Kind::Cpus,
        default: [CpuSet::NONE],
        neutral: CpuSet::NONE,
        turn: 12,
        place: Place::System,
        show: Show::IfDifferent,
        applies: |cell| cell.wait.governor().is_some() && cell.workload.has_tasks(),
        contradicts: |cell, machine| SkipReason::offline("idle-poll", cell.idle_poll, machine.cpus),
    }
}

/// The dimensions by how slowly their values take turns, the slowest first.
pub(crate) const SLOWEST_FIRST: [usize; COUNT] = {
    let mut order = [0; COUNT];
    let mut n = 0;
    while n < COUNT {
        let mut at = n;
        while at > 0 && TURNS[order[at - 1]] > TURNS[n] {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = n;
        n += 1;
    }
    order
};
