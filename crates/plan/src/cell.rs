// SPDX-License-Identifier: MIT OR Apache-2.0
//! One combination of the dimensions, and which of the obstacles stands against it.

use wait::stream::Stream;

use crate::{
    CallBy, Calls, Completion, CpuSet, Deliver, Hint, HostPoll, Machine, Obstacle, Shape, System,
    Trap, Wait, Wake, Workload,
};

/// One combination: what is measured as a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is run.
    pub workload: Workload,
    /// Who is interrupted; `one` for workloads that have no shapes.
    pub shape: Shape,
    /// How the receiver waits.
    pub wait: Wait,
    /// What traps.
    pub trap: Trap,
    /// How SGIs are delivered.
    pub deliver: Deliver,
    /// Whether polling receivers are interrupted.
    pub wake: Wake,
    /// Guest poll limit in microseconds; 0 where none applies.
    pub poll_limit_us: u32,
    /// EL2 poll limit in microseconds; 0 is off, or does not apply.
    pub host_poll_us: u32,
    /// How EL2 chooses its limit; `fixed` where it does not poll.
    pub host_poll: HostPoll,
    /// Whether the guest says that it polls; `silent` where it makes no difference.
    pub hint: Hint,
    /// Event-stream period in microseconds; 0 is off, or does not apply.
    pub event_stream_us: u32,
    /// Pause between two wake-ups in microseconds; the period of `timer` and `idle`.
    pub gap_us: u32,
    /// What belongs to the workloads that run on the executor.
    pub system: System,
}

impl Cell {
    /// The cell with every dimension that does not apply set to its neutral value.
    pub(crate) fn normalised(self) -> Self {
        let traps_wfi = self.halts() && self.trap.wfi();
        let host_polls = traps_wfi && self.host_poll_us != 0;
        Self {
            shape: match self.workload {
                Workload::Ipi => self.shape,
                _ => Shape::One,
            },
            wake: if self.workload.is_alone() {
                Wake::Ipi
            } else {
                self.wake
            },
            poll_limit_us: match self.workload {
                Workload::Stream => 0,
                Workload::Overshoot => self.poll_limit_us,
                _ if self.wait.limited() => self.poll_limit_us,
                _ => 0,
            },
            host_poll_us: if host_polls { self.host_poll_us } else { 0 },
            host_poll: if host_polls {
                self.host_poll
            } else {
                HostPoll::Fixed
            },
            hint: if host_polls && self.wait.limited() {
                self.hint
            } else {
                Hint::Silent
            },
            event_stream_us: if self.wait.uses_events() {
                self.event_stream_us
            } else {
                0
            },
            gap_us: match self.workload {
                Workload::Stream => 0,
                _ => self.gap_us,
            },
            system: self.normalised_system(),
            ..self
        }
    }

    /// Whether it may execute WFI. `overshoot` ends where others would.
    fn halts(&self) -> bool {
        self.wait.halts() && self.workload != Workload::Overshoot
    }

    /// The part of the system that applies.
    fn normalised_system(&self) -> System {
        fn only<T>(applies: bool, value: Option<T>) -> Option<T> {
            value.filter(|_| applies)
        }
        let system = &self.system;
        let is = |workload: Workload| self.workload == workload;
        let storm = is(Workload::Ipistorm);
        let calls = |calls: Calls| storm && system.calls == Some(calls);
        let governed = self.wait.governed();
        let io = is(Workload::Io);
        System {
            groups: only(
                is(Workload::Messaging) || is(Workload::Notify),
                system.groups,
            ),
            calls: only(storm, system.calls),
            offset: only(calls(Calls::Single), system.offset),
            mask: only(calls(Calls::Mask), system.mask),
            cpulist: only(
                storm || is(Workload::Timer) || is(Workload::Idle),
                system.cpulist,
            ),
            call_wait: only(storm, system.call_wait),
            // Where every wake-up is an interrupt there is nothing to choose.
            call_by: only(storm, system.call_by).map(|by| match self.wake {
                Wake::Ipi => CallBy::Ipi,
                Wake::Elide => by,
            }),
            device_us: only(io, system.device_us),
            spread: only(io, system.spread),
            completion: only(io, system.completion),
            psd_ms: only(io && governed, system.psd_ms),
            standby_us: only(governed, system.standby_us),
            idle_poll: only(governed && self.workload.has_tasks(), system.idle_poll),
        }
    }

    /// What stands against the part of the cell that belongs to the executor.
    fn system_obstacle(&self, cpus: usize) -> Option<Obstacle> {
        let System {
            offset,
            mask,
            cpulist,
            idle_poll,
            ..
        } = self.system;
        let sets = [
            ("mask", mask),
            ("cpulist", cpulist),
            ("idle-poll", idle_poll),
        ];
        for (key, set) in sets {
            if let Some(cpu) = set.and_then(|set| set.beyond(cpus)) {
                return Some(Obstacle::Offline { key, cpu, cpus });
            }
        }
        let alone = |mask: CpuSet| {
            let mut callers = cpulist.unwrap_or(CpuSet::NONE).iter(cpus);
            callers.any(|me| mask.iter(cpus).all(|cpu| cpu == me))
        };
        let by_time = matches!(self.workload, Workload::Timer | Workload::Idle);
        if by_time && self.gap_us == 0 {
            Some(Obstacle::NoPeriod)
        } else if let Some(offset) = offset.filter(|&offset| (offset as usize).is_multiple_of(cpus))
        {
            Some(Obstacle::OffsetToSelf { offset, cpus })
        } else if mask.is_some_and(alone) {
            Some(Obstacle::NobodyToCall)
        } else if cpulist.is_some_and(CpuSet::is_empty) {
            Some(Obstacle::NobodyCalls)
        } else {
            None
        }
    }

    /// Whether it takes two CPUs.
    fn needs_second(&self) -> bool {
        match self.workload {
            Workload::Ipi => !matches!(self.shape, Shape::Dry | Shape::Itself),
            Workload::Pingpong | Workload::Ipistorm | Workload::Notify => true,
            Workload::Io => self.system.completion == Some(Completion::Other),
            Workload::Messaging
            | Workload::Timer
            | Workload::Idle
            | Workload::Stream
            | Workload::Overshoot => false,
        }
    }

    /// The nearest period, in microseconds, if the machine can't make one
    /// within a factor of four of what the cell asks for.
    fn off_period(&self, machine: &Machine) -> Option<u32> {
        let stream = Stream::nearest(self.event_stream_us, machine.frequency, machine.ecv)?;
        let made = u128::from(stream.period()) * 1_000_000 / u128::from(machine.frequency.max(1));
        let asked = u128::from(self.event_stream_us);
        let near = made * 4 >= asked && made <= asked * 4;
        (!near).then_some(made.max(1) as u32)
    }

    /// What the machine has to model for the cell to show what its wait is
    /// meant to do, by the names of the probes.
    #[must_use]
    pub const fn depends_on(&self) -> &'static [&'static str] {
        match self.wait {
            // It arms no monitor.
            Wait::Wfe if matches!(self.workload, Workload::Stream) => {
                &["wfe_halts", "event_stream_period_ok"]
            }
            Wait::Wfe => &["wfe_halts", "monitor_wakes_wfe", "event_stream_period_ok"],
            Wait::WfeSev => &["wfe_halts", "sev_wakes_wfe", "event_stream_period_ok"],
            Wait::Wfet => &["wfet_halts", "monitor_wakes_wfe"],
            Wait::PollWfi
            | Wait::Haltpoll
            | Wait::Menu
            | Wait::Teo
            | Wait::Teo62
            | Wait::TeoUtil
            | Wait::Ladder
            | Wait::GovernedHaltpoll
            | Wait::Fixed => &["wfe_halts", "monitor_wakes_wfe"],
            Wait::Busy | Wait::Spin | Wait::Yield | Wait::Wfi => &[],
        }
    }

    /// What stands against running the cell on `machine`.
    #[must_use]
    pub fn obstacle(&self, machine: &Machine) -> Option<Obstacle> {
        let nothing_traps = match self.trap {
            Trap::None => false,
            Trap::Wfi => !self.halts(),
            Trap::Wfe => !self.wait.uses_events(),
            Trap::Both => !self.halts() && !self.wait.uses_events(),
        };
        let is = |workload| self.workload == workload;
        let no_receiver = matches!(self.shape, Shape::Dry | Shape::Itself);
        let off_period = self.off_period(machine);
        let checks = [
            (
                is(Workload::Stream) && (self.wait != Wait::Wfe || self.trap.wfe()),
                Obstacle::StreamAlone,
            ),
            (
                is(Workload::Overshoot) && !self.wait.keeps_a_limit(),
                Obstacle::NoLimit,
            ),
            (
                self.wake == Wake::Elide && !self.wait.polls(),
                Obstacle::NeverPolls,
            ),
            (nothing_traps, Obstacle::NothingTraps),
            (
                no_receiver && self.wait != Wait::Busy,
                Obstacle::ShapeNeedsBusy,
            ),
            (
                !machine.hypervisor && (self.trap != Trap::None || self.deliver != Deliver::Direct),
                Obstacle::NoHypervisor,
            ),
            (
                matches!(self.wait, Wait::Wfe | Wait::WfeSev) && self.event_stream_us == 0,
                Obstacle::Unbounded,
            ),
            (
                off_period.is_some(),
                Obstacle::StreamPeriod {
                    nearest_us: off_period.unwrap_or(0),
                },
            ),
            (self.needs_second() && machine.cpus < 2, Obstacle::OneCpu),
            (self.wait == Wait::Wfet && !machine.wfxt, Obstacle::NoWfxt),
            (
                machine.event_loses_irq
                    && self.wait.uses_events()
                    && self.wake == Wake::Ipi
                    && !self.workload.is_alone(),
                Obstacle::LosesInterrupts,
            ),
        ];
        checks
            .iter()
            .find(|(stands, _)| *stands)
            .map(|&(_, obstacle)| obstacle)
            .or_else(|| self.system_obstacle(machine.cpus))
    }
}
