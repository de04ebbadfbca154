// SPDX-License-Identifier: MIT OR Apache-2.0
//! One combination of the dimensions, and what can stand against it.

use core::fmt;

use wait::stream::Stream;

use crate::{Deliver, Hint, HostPoll, Shape, Trap, Wait, Wake, Workload};

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
    /// Pause between two wake-ups in microseconds.
    pub gap_us: u32,
}

/// What of the machine decides whether a cell can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CPUs.
    pub cpus: usize,
    /// FEAT_WFxT: WFET and WFIT.
    pub wfxt: bool,
    /// FEAT_ECV: among others, slower event streams.
    pub ecv: bool,
    /// Frequency of the counter, Hz.
    pub frequency: u64,
    /// The hypervisor is there.
    pub hypervisor: bool,
}

/// Why a cell is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// `elide`, and the wait never polls.
    NeverPolls,
    /// The trap is of an instruction that the wait does not execute.
    NothingTraps,
    /// There is no second CPU.
    OneCpu,
    /// Shapes `dry` and `self` have no receiver that waits.
    ShapeNeedsBusy,
    /// WFE without an event stream: an event that is lost would never be made
    /// good.
    Unbounded,
    /// The counter can't make an event stream near that period.
    StreamPeriod {
        /// The nearest that it can, microseconds.
        nearest_us: u32,
    },
    /// WFET, and the machine has no FEAT_WFxT.
    NoWfxt,
    /// It needs EL2, and the guest runs on the bare machine.
    NoHypervisor,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamPeriod { nearest_us } => {
                return write!(
                    f,
                    "event stream: the counter can't make that period; \
                     use --event-stream-us {nearest_us}"
                );
            }
            Self::NeverPolls => "elide: this wait never polls; use wake ipi",
            Self::NothingTraps => "trap: this wait does not execute that instruction",
            Self::OneCpu => "one CPU only; use --cpus 2 or more",
            Self::ShapeNeedsBusy => "shape: nobody waits; use wait busy",
            Self::Unbounded => {
                "wfe without event stream has no bound; use --event-stream-us 100, or wait wfet"
            }
            Self::NoWfxt => "wfet: this CPU has no FEAT_WFxT; use wait wfe",
            Self::NoHypervisor => "needs EL2, and runs under none; use trap none, deliver direct",
        })
    }
}

impl Cell {
    /// The cell with every dimension that does not apply set to its neutral value.
    pub(crate) fn normalised(self) -> Self {
        let traps_wfi = self.wait.halts() && self.trap.wfi();
        let host_polls = traps_wfi && self.host_poll_us != 0;
        Self {
            shape: match self.workload {
                Workload::Ipi => self.shape,
                Workload::Pingpong => Shape::One,
            },
            poll_limit_us: if self.wait.limited() {
                self.poll_limit_us
            } else {
                0
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
            ..self
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
            Wait::Wfe => &["wfe_halts", "monitor_wakes_wfe", "event_stream_period_ok"],
            Wait::WfeSev => &["wfe_halts", "sev_wakes_wfe", "event_stream_period_ok"],
            Wait::Wfet => &["wfet_halts", "monitor_wakes_wfe"],
            Wait::PollWfi | Wait::Haltpoll => &["wfe_halts", "monitor_wakes_wfe"],
            Wait::Busy | Wait::Spin | Wait::Yield | Wait::Wfi => &[],
        }
    }

    /// What stands against running the cell on `machine`.
    #[must_use]
    pub fn obstacle(&self, machine: &Machine) -> Option<Obstacle> {
        let nothing_traps = match self.trap {
            Trap::None => false,
            Trap::Wfi => !self.wait.halts(),
            Trap::Wfe => !self.wait.uses_events(),
            Trap::Both => !self.wait.halts() && !self.wait.uses_events(),
        };
        let no_receiver = matches!(self.shape, Shape::Dry | Shape::Itself);
        let off_period = self.off_period(machine);
        let checks = [
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
            (!no_receiver && machine.cpus < 2, Obstacle::OneCpu),
            (self.wait == Wait::Wfet && !machine.wfxt, Obstacle::NoWfxt),
        ];
        checks
            .iter()
            .find(|(stands, _)| *stands)
            .map(|&(_, obstacle)| obstacle)
    }
}
