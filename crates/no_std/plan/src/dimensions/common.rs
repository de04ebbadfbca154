// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first part of the table: dimensions that have their own field in records and results.

/// Passes these entries, followed by those of `system`, to `dimensions!`, which generates
/// everything that follows from the table.
macro_rules! common_and {
    ($($system:tt)*) => {
        dimensions! {
            /// Operation that is measured.
            workload: Workload {
                key: "workload",
                help: "What is run: ipi, pingpong, ipistorm, messaging, pipe, notify, io, timer, idle, frames, stream (the \
                       period of the event stream), overshoot (polls that end at their limit); on Linux, with --guest: linux-pipe, linux-futex, linux-eventfd, linux-membarrier, linux-seccomp-notify, linux-messaging, linux-timer, linux-idle, linux-call, linux-exec (the commands of --exec)",
                default: [Workload::Ipi, Workload::Pingpong],
                turn: 0,
                place: Place::Always,
                show: Show::Title,
                applies: |_| true,
                contradicts: |cell, machine| {
                    let stream = cell.workload == Workload::Stream;
                    if cell.workload.is_linux() != machine.linux {
                        Some(SkipReason::OtherGuest { linux: machine.linux })
                    } else if stream && (cell.wait != Wait::Wfe || cell.trap.wfe()) {
                        Some(SkipReason::StreamAlone)
                    } else if cell.workload == Workload::Overshoot && !cell.wait.keeps_a_limit() {
                        Some(SkipReason::NoLimit)
                    } else {
                        (cell.needs_second_cpu() && machine.cpus < 2).then_some(SkipReason::OneCpu)
                    }
                },
            }
            /// Which CPUs are interrupted; `one` for workloads that have no shapes.
            shape: Shape {
                key: "shape",
                help: "What workload ipi interrupts: dry (nothing), self, one, broadcast",
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
                help: "How the receiver waits: {words} (these are all; poll-wfi is the bare loop, without a governor), or the \
                       idle states of --states by governor:NAME, with NAME {governor}, or all",
                default: [Wait::Busy, Wait::Spin, Wait::Wfi, Wait::Wfe, Wait::Wfet, Wait::PollWfi],
                turn: 3,
                place: Place::Always,
                show: Show::Column,
                applies: |cell| !cell.workload.is_linux(),
                contradicts: |cell, machine| {
                    if cell.wait.needs_wfxt() && !machine.wfxt {
                        Some(SkipReason::NoWfxt)
                    } else {
                        let interrupted = !cell.wake.elides() && !cell.workload.is_alone();
                        let lost = machine.event_loses_irq && cell.uses_events() && interrupted;
                        lost.then_some(SkipReason::LosesInterrupts)
                    }
                },
            }
            /// The guest's waits that trap.
            trap: Trap {
                key: "trap",
                help: "Which waits of the guest trap: none, wfi, wfe, both",
                default: [Trap::None, Trap::Wfi],
                turn: 4,
                place: Place::Always,
                show: Show::Column,
                applies: |_| true,
                contradicts: |cell, machine| {
                    let traps = cell.trap != Trap::None;
                    let wfi = cell.trap.wfi() && cell.halts();
                    let wfe = cell.trap.wfe() && cell.uses_events();
                    let alone = cell.trap != Trap::Both && cell.uses_events() && traps;
                    if traps && !wfi && !wfe {
                        Some(SkipReason::NothingTraps(cell.trap))
                    } else if traps && !machine.under.injects() {
                        Some(SkipReason::NoHypervisor)
                    } else if traps && machine.under == Under::Bao {
                        Some(SkipReason::NeverTraps(machine.under))
                    } else {
                        let together = alone && machine.under == Under::Xen;
                        let other = machine.given.filter(|given| given.alone && !given.traps_of(cell));
                        match other {
                            _ if together => Some(SkipReason::TrapsTogether(machine.under)),
                            other => other.map(|given| SkipReason::TrapIsGiven(given.trap)),
                        }
                    }
                },
            }
            /// How SGIs are delivered.
            deliver: Deliver {
                key: "deliver",
                help: "How interrupts reach the receiver: inject (by the hypervisor), direct (the guest owns the interface)",
                default: *Deliver::ALL,
                turn: 5,
                place: Place::Always,
                show: Show::Column,
                applies: |_| true,
                contradicts: |cell, machine| {
                    let under = machine.under;
                    match cell.deliver {
                        Deliver::Inject => (!under.injects()).then_some(SkipReason::NoHypervisor),
                        Deliver::Direct if !under.is_direct() => Some(SkipReason::NotDirect(under)),
                        Deliver::Direct => {
                            let emulated = machine.gicv2 && under == Under::Rouse;
                            emulated.then_some(SkipReason::NotDirectGicV2)
                        }
                    }
                },
            }
            /// Whether polling receivers are interrupted.
            wake: Wake {
                key: "wake",
                help: "Whether a polling receiver is interrupted: ipi (always), elide (no)",
                default: *Wake::ALL,
                turn: 6,
                place: Place::Always,
                show: Show::Column,
                applies: |cell| !cell.workload.is_alone() && !cell.workload.is_linux(),
                contradicts: |cell, _| {
                    let never = cell.wake.elides() && !cell.polls();
                    never.then_some(SkipReason::NeverPolls)
                },
            }
            /// Guest poll limit in microseconds; 0 where none applies.
            poll_limit_us: u32 {
                key: "poll-limit-us",
                help: "How long the guest polls before WFI, microseconds",
                range: (1, MAX_US),
                default: [100],
                neutral: 0,
                turn: 7,
                place: Place::Always,
                show: Show::Sweep { column: "limit", chart: "Poll limit", preferred: 100 },
                applies: |cell| cell.has_limit(),
                own_default: |cell| cell.wait.own_limit_us(),
            }
            /// EL2 poll limit in microseconds; 0 if EL2 does not poll, or the limit does not apply.
            host_poll_us: u32 {
                key: "host-poll-us",
                help: "How long the hypervisor polls on a trapped WFI, microseconds; 0 is off",
                range: (0, MAX_US),
                default: [0, 50],
                turn: 8,
                place: Place::Always,
                show: Show::Sweep { column: "host", chart: "Host poll limit", preferred: 0 },
                applies: |cell| cell.traps_wfi(),
                contradicts: |cell, machine| {
                    let never = cell.host_poll_us != 0 && matches!(machine.under, Under::Xen | Under::Bao);
                    never.then_some(SkipReason::NoHostPoll(machine.under))
                },
            }
            /// How EL2 chooses its limit; `fixed` where it does not poll.
            host_poll: HostPoll {
                key: "host-poll",
                help: "How the hypervisor chooses that limit: fixed, adaptive (by KVM's rules)",
                default: [HostPoll::Fixed],
                turn: 10,
                place: Place::Unusual,
                show: Show::Special("EL2"),
                applies: |cell| cell.host_polls(),
                contradicts: |cell, machine| {
                    let other = cell.host_poll != HostPoll::Adaptive;
                    let own = other && machine.under.kvm_mode().is_some();
                    own.then_some(SkipReason::OwnRules(machine.under))
                },
            }
            /// Whether the guest tells EL2 when the guest polls; `silent` where that has no effect.
            hint: Hint {
                key: "hint",
                help: "Whether a guest that polls tells the hypervisor, which then does not: silent, tell",
                default: [Hint::Silent],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("hint"),
                applies: |cell| cell.host_polls() && cell.wait.limited() && cell.may_poll(),
                contradicts: |cell, machine| {
                    let told = cell.hint == Hint::Tell && machine.under.kvm_mode().is_some();
                    told.then_some(SkipReason::OwnRules(machine.under))
                },
            }
            /// Event-stream period in microseconds; 0 if the stream is off, or does not apply.
            event_stream_us: u32 {
                key: "event-stream-us",
                help: "Period of the event stream, microseconds; 0 is off",
                range: (0, MAX_US),
                default: [100],
                neutral: 0,
                turn: 9,
                place: Place::Always,
                show: Show::Sweep { column: "stream", chart: "Event-stream period", preferred: 100 },
                applies: |cell| cell.uses_events(),
                contradicts: |cell, machine| {
                    if cell.wait.needs_stream() && cell.event_stream_us == 0 {
                        Some(SkipReason::Unbounded)
                    } else {
                        let nearest = cell.period_if_far(machine);
                        nearest.map(|nearest_us| SkipReason::StreamPeriod { nearest_us })
                    }
                },
            }
            /// Pause between two wake-ups in microseconds; the period of `timer` and `idle`.
            gap_us: u32 {
                key: "gap-us",
                aliases: &["delay-us"],
                help: "Pause between two wake-ups, microseconds; the period of timer (default 1000), idle (10000) and frames (16667)",
                range: (0, MAX_US),
                default: [0],
                turn: 2,
                place: Place::Always,
                show: Show::Sweep { column: "gap", chart: "Gap", preferred: 0 },
                applies: |cell| {
                    let linux = cell.workload.is_linux() && cell.workload.period_us().is_none();
                    cell.workload != Workload::Stream && !linux && !cell.is_open()
                },
                own_default: |cell| cell.workload.period_us(),
                contradicts: |cell, _| {
                    let none = cell.workload.period_us().is_some() && cell.gap_us == 0;
                    none.then_some(SkipReason::NoPeriod)
                },
            }
            /// The guest's atomic instructions; by default, those in the image that runs.
            atomics: Atomics {
                key: "atomics",
                help: "Atomic instructions of the guest: llsc (load and store exclusive), lse (single instructions, which \
                       FEAT_LSE has). Each is an image, so a boot has one of them, and `run` boots once for each (default the \
                       best that all CPUs have)",
                default: [Atomics::Llsc],
                turn: 11,
                place: Place::Always,
                show: Show::IfDifferent,
                applies: |cell| !cell.workload.is_linux(),
                contradicts: |cell, machine| {
                    let lacking = cell.atomics == Atomics::Lse && !machine.lse;
                    lacking.then_some(SkipReason::NoLse)
                },
            }
            /// How Linux idles; `default` if Linux is not the guest.
            linux_cpuidle: LinuxCpuidle {
                key: "linux-cpuidle",
                help: "How Linux idles, with --guest: default (as it does by itself), nohlt (it polls), off (WFI, without \
                       cpuidle), haltpoll (that driver and governor), or by states that {governor} chooses among \
                       (governor:NAME). Each is a boot",
                default: [LinuxCpuidle::Default],
                turn: 11,
                place: Place::Unusual,
                show: Show::IfDifferent,
                applies: |cell| cell.workload.is_linux(),
            }
            /// The command that runs on Linux; `none` for other workloads.
            command: CommandName {
                key: "command",
                help: "Names of the commands of --exec that linux-exec runs (default all)",
                default: [CommandName::NONE],
                turn: 11,
                place: Place::Unusual,
                show: Show::IfDifferent,
                applies: |cell| cell.workload == Workload::LinuxExec,
                contradicts: |cell, _| (cell.command == CommandName::NONE).then_some(SkipReason::NoCommand),
            }
            /// The barrier before WFI; `none` if no WFI is executed.
            wfi_barrier: WfiBarrier {
                key: "wfi-barrier",
                help: "The barrier before each WFI of the guest: none, dsb (DSB SY, as in Linux's idle loop)",
                default: [WfiBarrier::None],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("WFI behind"),
                applies: |cell| cell.halts() && !cell.workload.is_linux(),
            }
            /// Whether caches hold what a wake-up uses; `warm` if samples are not taken one by one.
            cache: Cache {
                key: "cache",
                help: "Whether caches hold what a wake-up uses (ipi, pingpong): warm (as the one before left them), cold \
                       (cleaned and invalidated before each sample; needs a machine that models caches)",
                default: [Cache::Warm],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("caches"),
                applies: |cell| {
                    let workload = cell.workload;
                    !workload.has_tasks() && !workload.is_alone() && !workload.is_linux()
                },
                contradicts: |cell, machine| {
                    let unseen = cell.cache == Cache::Cold && !machine.caches;
                    unseen.then_some(SkipReason::NoCaches)
                },
            }
            /// Activity of the CPUs that take no part.
            noise: Noise {
                key: "noise",
                help: "What the CPUs do that take no part in what is measured: none, stream (through memory larger than \
                       caches), sgi (they interrupt each other), tlbi (broadcast TLB invalidates)",
                default: [Noise::None],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("noise"),
                applies: |cell| !cell.workload.is_linux(),
                contradicts: |cell, machine| cell.why_no_noise(machine),
            }
            /// Mean time between requests, microseconds; 0 means that each request waits for the previous answer.
            arrival_us: u32 {
                key: "arrival-us",
                help: "Mean time from one request of notify to the next, microseconds, whether the one before is answered or \
                       not (open loop); 0: when it is (closed loop)",
                range: (0, MAX_US),
                default: [0],
                turn: 11,
                place: Place::Unusual,
                show: Show::Sweep { column: "arrival", chart: "Time between requests", preferred: 0 },
                applies: |cell| cell.workload == Workload::Notify,
            }
            /// How long the supervisor works on a request, microseconds.
            service_us: u32 {
                key: "service-us",
                help: "How long the supervisor of notify works on a request, microseconds",
                range: (0, MAX_US),
                default: [0],
                turn: 11,
                place: Place::Unusual,
                show: Show::Sweep { column: "service", chart: "Service time", preferred: 0 },
                applies: |cell| cell.workload == Workload::Notify,
            }
            /// Frequency of the scheduler tick of a governed CPU.
            hz: Hz {
                key: "hz",
                help: "How often the scheduler's tick of a governed CPU comes, which also counts the time of --psd-ms and \
                       bounds polls: 100, 250 (default), 300, 1000",
                default: [Hz::HZ_250],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("hz"),
                applies: |cell| cell.wait.governor().is_some(),
            }
            /// Idle states of a governed CPU.
            states: States {
                key: "states",
                help: "Idle states of a governed CPU, from shallow to deep: poll, wfi, standby, deep (a second standby), each \
                       as NAME or NAME:LATENCY:RESIDENCY in microseconds (poll+wfi:2:10+deep); or arm_poll_idle:US, that \
                       driver with its poll limit (default poll+wfi+standby)",
                default: [States::DEFAULT],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("states"),
                applies: |cell| cell.wait.governor().is_some(),
                contradicts: |cell, _| {
                    let table = cell.states.table(cell.standby_us, cell.hz.tick_ns());
                    table.err().map(SkipReason::States)
                },
            }
            /// Second guest of each CPU that takes part.
            neighbour: Neighbour {
                key: "neighbour",
                help: "A second guest on each CPU that takes part, which has it while WFI traps and waits, and in slices: \
                       none, work (it computes), cache (it goes through 256 KiB of memory), cache:16, cache:64, cache:1024, \
                       cache:4096 (KiB)",
                default: [Neighbour::None],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("neighbour"),
                applies: |_| true,
                contradicts: |cell, machine| {
                    if !cell.neighbour.is_there() {
                        None
                    } else if machine.under != Under::Rouse {
                        Some(SkipReason::NoNeighbour(machine.under))
                    } else {
                        let direct = cell.deliver == Deliver::Direct;
                        direct.then_some(SkipReason::NeighbourInjects)
                    }
                },
            }
            /// Slice of a vCPU or its neighbour, microseconds; 0 means that the vCPU keeps its CPU.
            slice_us: u32 {
                key: "slice-us",
                help: "How long a vCPU that does not wait has its CPU before its neighbour has it for as long, microseconds; \
                       0: it keeps it",
                range: (0, MAX_SLICE_US),
                default: [4000],
                neutral: 0,
                turn: 11,
                place: Place::Unusual,
                show: Show::Sweep { column: "slice", chart: "Slice", preferred: 4000 },
                applies: |cell| cell.neighbour.is_there(),
            }
            /// Whether a WFE gives the CPU to the neighbour.
            yield_on: YieldOn {
                key: "yield-on",
                help: "What gives the CPU to the neighbour beside a trapped WFI: none, wfe (a WFE that traps, for a slice)",
                default: [YieldOn::None],
                turn: 11,
                place: Place::Unusual,
                show: Show::Special("yields on"),
                applies: |cell| cell.neighbour.is_there() && cell.uses_events() && cell.trap.wfe(),
                contradicts: |cell, _| {
                    let endless = cell.yield_on == YieldOn::Wfe && cell.slice_us == 0;
                    endless.then_some(SkipReason::YieldsForEver)
                },
            }
            /// Sender and receiver of the wake-up; the first two CPUs if the cell has no such pair.
            pair: Pair {
                key: "pair",
                help: "Which CPUs the wake-up is between (pingpong, and ipi of one): sender,receiver by their numbers, several \
                       joined by + (4,5+0,4), or all: every two, each direction of ipi, of more than 4096 a sample; all:N for N \
                       at most, all:N@SEED for others of them (default 0,1)",
                default: [Pair::FIRST],
                turn: 11,
                place: Place::Unusual,
                show: Show::IfDifferent,
                applies: |cell| cell.has_pair(),
                contradicts: |cell, machine| SkipReason::offline_of("pair", cell.pair, machine.cpus),
            }
            $($system)*
        }
    };
}

pub(super) use common_and;
