// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second part of the table: dimensions of the workloads on the executor. Records and results
//! have them in `system`, and tables show them if their values differ.

/// Passes these entries to the macro `$with`.
macro_rules! system {
    ($with:ident) => {
        $with! {
            /// Groups of tasks, as in `perf bench sched messaging -g`; pairs of tasks for `pipe` and `notify`.
            groups: u32 {
                key: "groups",
                aliases: &["clients"],
                help: "Groups of messaging, pairs of pipe, pairs of client and server of notify, 1 to 16 (default 1)",
                range: (1, 16),
                default: [1],
                turn: 24,
                applies: |cell| cell.workload.has_groups(),
            }
            /// Which CPUs `ipistorm` calls.
            calls: Calls {
                key: "calls",
                help: "Which CPUs ipistorm calls: single (the CPU at --offset), mask (those of --mask), all",
                default: [Calls::Single],
                turn: 23,
                applies: |cell| cell.is_storm(),
            }
            /// Distance from a caller's number to the number of the single CPU that it calls.
            offset: u32 {
                key: "offset",
                help: "A call of one CPU goes to the caller's number plus this (default 1)",
                range: (0, 511),
                default: [1],
                turn: 22,
                applies: |cell| cell.is_storm() && cell.calls == Calls::Single,
                contradicts: |cell, machine| {
                    let (offset, cpus) = (cell.offset, machine.cpus);
                    let to_self = (offset as usize).is_multiple_of(cpus);
                    to_self.then_some(SkipReason::OffsetToSelf { offset, cpus })
                },
            }
            /// CPUs to which calls to a mask go.
            mask: CpuSet {
                key: "mask",
                help: "CPUs that a call to many goes to (default all)",
                default: [CpuSet::ALL],
                turn: 21,
                applies: |cell| cell.is_storm() && cell.calls == Calls::Mask,
                contradicts: |cell, machine| {
                    let none = cell.calls_itself_only(machine.cpus);
                    SkipReason::offline("mask", cell.mask, machine.cpus)
                        .or(none.then_some(SkipReason::NoTarget))
                },
            }
            /// CPUs that make calls, or that a timer wakes up.
            cpulist: CpuSet {
                key: "cpulist",
                help: "CPUs that call (ipistorm; default 0), or wake up by time (timer, idle; default all)",
                default: [CpuSet::ALL],
                turn: 20,
                applies: |cell| {
                    let linux = cell.workload.is_linux();
                    cell.is_storm() || (cell.workload.period_us().is_some() && !linux)
                },
                own_default: |cell| cell.is_storm().then_some(CpuSet::FIRST),
                contradicts: |cell, machine| {
                    let none = cell.cpulist.is_empty().then_some(SkipReason::NoCaller);
                    SkipReason::offline("cpulist", cell.cpulist, machine.cpus).or(none)
                },
            }
            /// Whether the caller waits until the function has run.
            call_wait: Switch {
                key: "call-wait",
                help: "Whether the caller waits until the function has run: on, off",
                default: [Switch::On],
                turn: 19,
                applies: |cell| cell.is_storm(),
            }
            /// How a call reaches a CPU that polls; if every wake-up is an interrupt, there is
            /// nothing to choose.
            call_by: CallBy {
                key: "call-by",
                help: "How a call reaches a CPU that polls: notify, resched, ipi, skip-newidle, sm-idle",
                default: [CallBy::Notify],
                turn: 18,
                applies: |cell| cell.is_storm(),
                forced: |cell| (!cell.wake.elides()).then_some(CallBy::Ipi),
            }
            /// CPUs on which two tasks are always ready, so that a search for work can find some.
            crowd: CpuSet {
                key: "crowd",
                help: "CPUs on which two tasks are always ready, besides those that call (ipistorm; default none)",
                default: [CpuSet::NONE],
                turn: 18,
                applies: |cell| cell.is_storm(),
                contradicts: |cell, machine| SkipReason::offline("crowd", cell.crowd, machine.cpus),
            }
            /// How long the device of workload `io` takes to read, microseconds.
            device_us: u32 {
                key: "device-us",
                help: "How long the device of io takes to read, microseconds (default 20)",
                range: (1, 1_000_000),
                default: [20],
                turn: 17,
                applies: |cell| cell.workload == Workload::Io,
            }
            /// How many requests in a hundred are writes.
            writes: u32 {
                key: "writes",
                help: "How many requests of io in a hundred are writes, drawn at random (default 0)",
                range: (0, 100),
                default: [0],
                turn: 17,
                applies: |cell| cell.workload == Workload::Io,
            }
            /// How long the device takes to write, microseconds.
            write_us: u32 {
                key: "write-us",
                help: "How long the device of io takes to write, microseconds (default 20)",
                range: (1, 1_000_000),
                default: [20],
                turn: 17,
                applies: |cell| cell.workload == Workload::Io && cell.writes != 0,
            }
            /// How the device's times, or the times from one request to the next, are distributed.
            spread: Spread {
                key: "spread",
                help: "How times of io's device (default fixed), or from one request to the next (exponential), are \
                       distributed: fixed, uniform, exponential",
                default: [Spread::Fixed],
                turn: 16,
                applies: |cell| cell.workload == Workload::Io || cell.is_open(),
                own_default: |cell| cell.is_open().then_some(Spread::Exponential),
            }
            /// Which CPU the device interrupts.
            completion: Completion {
                key: "completion",
                help: "How many requests of io in a hundred interrupt the CPU that submitted them, drawn at random; the \
                       others interrupt the next CPU (default 100, same; other is 0)",
                default: [Completion::SAME],
                turn: 15,
                applies: |cell| cell.workload == Workload::Io,
            }
            /// How long a CPU avoids deep idle states after a device request, milliseconds; 0 is off.
            psd_ms: u32 {
                key: "psd-ms",
                help: "How long a governed CPU stays shallow after it asked a device, milliseconds; 0 is off",
                range: (0, 1000),
                default: [0],
                turn: 14,
                applies: |cell| cell.workload == Workload::Io && cell.wait.governor().is_some(),
            }
            /// How shallow the CPU stays after a device request.
            psd_limit: PsdLimit {
                key: "psd-limit",
                help: "How shallow that is: poll (the shallowest state), wfi (no deeper than WFI, by a latency limit)",
                default: [PsdLimit::Poll],
                turn: 14,
                applies: |cell| {
                    cell.workload == Workload::Io && cell.wait.governor().is_some() && cell.psd_ms != 0
                },
            }
            /// Exit latency of the standby state, microseconds; 0: there is no such state.
            standby_us: u32 {
                key: "standby-us",
                help: "Exit latency of state standby where --states does not give it, microseconds; 0 is without that state \
                       (default 100)",
                range: (0, 10_000),
                default: [States::STANDBY_US],
                neutral: 0,
                turn: 13,
                applies: |cell| cell.wait.governor().is_some() && cell.states.leaves_standby_open(),
            }
            /// CPUs that poll regardless of the governor's choice.
            idle_poll: CpuSet {
                key: "idle-poll",
                help: "Governed CPUs that poll whatever the governor says (default none)",
                default: [CpuSet::NONE],
                turn: 12,
                applies: |cell| cell.wait.governor().is_some() && cell.workload.has_tasks(),
                contradicts: |cell, machine| SkipReason::offline("idle-poll", cell.idle_poll, machine.cpus),
            }
            /// How the CPUs of `idle_poll` are made to poll.
            idle_poll_by: IdlePollBy {
                key: "idle-poll-by",
                help: "How --idle-poll makes CPUs poll: posted (a switch; YIELD, with ticks), pointer (WFE, without)",
                default: [IdlePollBy::Posted],
                turn: 12,
                applies: |cell| {
                    let governed = cell.wait.governor().is_some();
                    governed && cell.workload.has_tasks() && !cell.idle_poll.is_empty()
                },
            }
        }
    };
}

pub(super) use system;
