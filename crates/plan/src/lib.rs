// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be measured.
//!
//! A [`Plan`] holds a list of values per dimension. It travels to the guest as
//! boot arguments (`rouse.wait=wfi,wfe`), is read there by the same code that
//! printed it, and is expanded on both sides into the same [`Cell`]s: the
//! product of the lists. Where a combination makes no sense or the machine
//! can't do it, [`Cell::obstacle`] says why; such a cell is listed as skipped
//! if its dimension was named, and left out if it only came with the defaults.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod cell;
mod cpus;
mod magnitude;
mod obstacle;
mod pace;
mod system;
mod text;
mod words;

pub use cell::Cell;
pub use cpus::CpuSet;
pub use magnitude::magnitude;
pub use obstacle::{Machine, Obstacle};
pub use pace::{BALANCED, End, Limits, PASSES, Pace, is_forwards};
pub use system::{System, Systems};
pub use text::Error;
pub use words::{
    CallBy, Calls, Completion, Deliver, Hint, HostPoll, Shape, Spread, Stages, Switch, Trap, Under,
    Wait, Wake, Word, Workload,
};

use arrayvec::ArrayVec;

/// The values of a dimension; the most that can be named of one.
pub type List<T> = ArrayVec<T, 16>;

/// One dimension: its values, and whether somebody named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension<T> {
    /// Values, never empty.
    pub values: List<T>,
    /// They were asked for, so what can't be run is to be listed as skipped.
    pub named: bool,
}

impl<T: Copy> Dimension<T> {
    fn default_of(values: &[T]) -> Self {
        Self {
            values: values.iter().copied().collect(),
            named: false,
        }
    }
}

/// What is to be measured; see the [crate] documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is run.
    pub workload: Dimension<Workload>,
    /// Who is interrupted, for workload `ipi`.
    pub shape: Dimension<Shape>,
    /// How the receiver waits.
    pub wait: Dimension<Wait>,
    /// What traps.
    pub trap: Dimension<Trap>,
    /// How SGIs are delivered.
    pub deliver: Dimension<Deliver>,
    /// Whether polling receivers are interrupted.
    pub wake: Dimension<Wake>,
    /// Guest poll limits, microseconds.
    pub poll_limit_us: Dimension<u32>,
    /// EL2 poll limits, microseconds.
    pub host_poll_us: Dimension<u32>,
    /// How EL2 chooses its limit.
    pub host_poll: Dimension<HostPoll>,
    /// Whether a polling guest says so.
    pub hint: Dimension<Hint>,
    /// Event-stream periods, microseconds; 0 is off.
    pub event_stream_us: Dimension<u32>,
    /// Pauses between two wake-ups, microseconds.
    pub gap_us: Dimension<u32>,
    /// What belongs to the workloads that run on the executor.
    pub system: Systems,
    /// Whether cells are run once more with time stamps; one value.
    pub stages: Dimension<Stages>,
    /// Wake-ups per cell at most.
    pub iterations: u32,
    /// A cell may end before, once its passes repeat each other.
    pub settle: bool,
    /// Time that a cell may take beside the pauses asked for, milliseconds of the
    /// guest; 0 is no bound. `None` is the default of [`Limits::of`].
    pub cell_ms: Option<u32>,
    /// The part of the cells that is meant.
    pub shard: Shard,
    /// Every sample is to be reported, not only their histogram.
    pub raw: bool,
    /// Only what the table needs is reported: no histograms, no stages.
    pub compact: bool,
    /// Samples are reported in cycles of the core, if the guest can tell how many
    /// a tick of the counter has.
    pub cycles: bool,
    /// The machine is known to lose an interrupt that is acknowledged while an
    /// event comes; see [`Machine::event_loses_irq`].
    pub event_loses_irq: bool,
}

/// One part of the cells, dealt out like cards: part `index` of `of`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl Shard {
    /// The one part that is everything.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether listed cell `number`, from 0, is of this part.
    const fn has(self, number: usize) -> bool {
        number % self.of as usize == self.index as usize - 1
    }
}

/// Largest limit of `haltpoll`, microseconds, unless one is named: the published
/// default of `guest_halt_poll_ns`.
const HALTPOLL_US: u32 = 200;

/// Periods of workloads `timer` and `idle`, microseconds, unless one is named.
const TIMER_US: u32 = 1000;
const IDLE_US: u32 = 10_000;

impl Default for Plan {
    fn default() -> Self {
        use {Deliver as D, Shape as S, Wait as W};
        let waits = [W::Busy, W::Spin, W::Wfi, W::Wfe, W::Wfet, W::PollWfi];
        Self {
            workload: Dimension::default_of(&[Workload::Ipi, Workload::Pingpong]),
            shape: Dimension::default_of(S::ALL),
            wait: Dimension::default_of(&waits),
            trap: Dimension::default_of(&[Trap::None, Trap::Wfi]),
            deliver: Dimension::default_of(D::ALL),
            wake: Dimension::default_of(Wake::ALL),
            poll_limit_us: Dimension::default_of(&[100]),
            host_poll_us: Dimension::default_of(&[0, 50]),
            host_poll: Dimension::default_of(&[HostPoll::Fixed]),
            hint: Dimension::default_of(&[Hint::Silent]),
            event_stream_us: Dimension::default_of(&[100]),
            gap_us: Dimension::default_of(&[0]),
            system: Systems::default(),
            stages: Dimension::default_of(&[Stages::On]),
            iterations: 2000,
            settle: true,
            cell_ms: None,
            shard: Shard::WHOLE,
            raw: false,
            compact: false,
            cycles: false,
            event_loses_irq: false,
        }
    }
}

impl Plan {
    /// The cells, in order. Both sides expand the same plan to the same list,
    /// given the same machine.
    pub fn cells<'p>(&'p self, machine: &'p Machine) -> impl Iterator<Item = Cell> + 'p {
        let expanded = (0..self.combinations()).map(|number| self.combination(number));
        expanded
            .enumerate()
            .filter(|&(number, ref cell)| self.first_of_its_kind(number, cell))
            .map(|(_, cell)| cell)
            .filter(|cell| self.is_listed(cell, machine))
            .enumerate()
            .filter(|&(number, _)| self.shard.has(number))
            .map(|(_, cell)| cell)
    }

    fn combinations(&self) -> usize {
        self.dimensions().iter().product::<usize>() * self.system.combinations()
    }

    /// Lengths of the dimensions, the slowest first.
    fn dimensions(&self) -> [usize; 12] {
        [
            self.workload.values.len(),
            self.shape.values.len(),
            self.gap_us.values.len(),
            self.wait.values.len(),
            self.trap.values.len(),
            self.deliver.values.len(),
            self.wake.values.len(),
            self.poll_limit_us.values.len(),
            self.host_poll_us.values.len(),
            self.event_stream_us.values.len(),
            self.host_poll.values.len(),
            self.hint.values.len(),
        ]
    }

    /// Combination `number` of the product, with what does not apply to it
    /// set to its neutral value.
    fn combination(&self, mut number: usize) -> Cell {
        let mut system = self.system.combination(number);
        number /= self.system.combinations();
        let mut at = self.dimensions();
        for length in at.iter_mut().rev() {
            let index = number % *length;
            number /= *length;
            *length = index;
        }
        let wait = self.wait.values[at[3]];
        let poll_limit_us = match wait {
            Wait::Haltpoll if !self.poll_limit_us.named => HALTPOLL_US,
            _ => self.poll_limit_us.values[at[7]],
        };
        let workload = self.workload.values[at[0]];
        if workload == Workload::Ipistorm && !self.system.cpulist.named {
            system.cpulist = Some(CpuSet::FIRST);
        }
        Cell {
            workload,
            shape: self.shape.values[at[1]],
            gap_us: match (workload, self.gap_us.named) {
                (Workload::Timer, false) => TIMER_US,
                (Workload::Idle, false) => IDLE_US,
                _ => self.gap_us.values[at[2]],
            },
            wait,
            trap: self.trap.values[at[4]],
            deliver: self.deliver.values[at[5]],
            wake: self.wake.values[at[6]],
            poll_limit_us,
            host_poll_us: self.host_poll_us.values[at[8]],
            event_stream_us: self.event_stream_us.values[at[9]],
            host_poll: self.host_poll.values[at[10]],
            hint: self.hint.values[at[11]],
            system,
        }
        .normalised()
    }

    /// Whether no earlier combination is the same cell.
    ///
    /// Cells repeat where a dimension does not apply and is set to its neutral
    /// value. Whether it applies depends on what does, so that the repeated
    /// cell is found by going back in one dimension alone. The guest does this at
    /// boot, on simulators too, so it must not look at all earlier combinations.
    fn first_of_its_kind(&self, number: usize, cell: &Cell) -> bool {
        let main = self.dimensions().into_iter().rev();
        let mut stride = 1;
        self.system.lengths().into_iter().chain(main).all(|length| {
            let (index, step) = (number / stride % length, stride);
            stride *= length;
            (1..=index).all(|back| self.combination(number - back * step) != *cell)
        })
    }

    /// Whether a cell appears at all: it can run, or what stands against it
    /// was asked for.
    fn is_listed(&self, cell: &Cell, machine: &Machine) -> bool {
        if self.repeats_delivery(cell, machine) {
            return false;
        }
        let Some(obstacle) = cell.obstacle(machine) else {
            return !self.is_left_out(cell);
        };
        match obstacle {
            Obstacle::NeverPolls => self.wake.named,
            Obstacle::NothingTraps => self.trap.named,
            Obstacle::OneCpu => !self.is_left_out(cell),
            Obstacle::NoPeriod
            | Obstacle::OffsetToSelf { .. }
            | Obstacle::NobodyToCall
            | Obstacle::NobodyCalls
            | Obstacle::Offline { .. } => true,
            // What came with the defaults is dropped: these workloads plan the waits
            // that make sense.
            Obstacle::StreamAlone | Obstacle::NoLimit => {
                (self.wait.named || cell.wait == Wait::Wfe)
                    && (self.trap.named || cell.trap == Trap::None)
            }
            Obstacle::ShapeNeedsBusy => self.shape.named && self.wait.named,
            Obstacle::Unbounded | Obstacle::StreamPeriod { .. } => true,
            Obstacle::NoWfxt | Obstacle::LosesInterrupts => !self.is_left_out(cell),
            Obstacle::NoHypervisor => self.trap.named || self.deliver.named,
        }
    }

    /// What the default leaves out to stay readable: a broadcast is shown to
    /// CPUs that halt, and who polls, guest or hypervisor, in `pingpong`, unless
    /// more is asked for.
    fn is_left_out(&self, cell: &Cell) -> bool {
        let broadcast = cell.shape == Shape::Broadcast && cell.wait != Wait::Wfi;
        let host_polls = cell.host_poll_us != 0 && cell.workload != Workload::Pingpong;
        broadcast && !self.shape.named || host_polls && !self.host_poll_us.named
    }

    /// Whether it is a second time what delivers nothing, only by the other delivery.
    fn repeats_delivery(&self, cell: &Cell, machine: &Machine) -> bool {
        let first = if machine.hypervisor {
            Deliver::Inject
        } else {
            Deliver::Direct
        };
        cell.workload.is_alone() && cell.deliver != first && !self.deliver.named
    }
}
