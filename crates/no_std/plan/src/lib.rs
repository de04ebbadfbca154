// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a measurement: the cells that it measures.
//!
//! [`DIMENSIONS`] is the one table of everything that distinguishes cells. The table has each
//! dimension's words, values and default, when it applies, what contradicts it, and its name in
//! options, records, results, tables and charts. CONTRIBUTING.md describes how to add a dimension.
//!
//! A [`Plan`] holds a list of values per dimension. The plan travels to the guest as boot arguments
//! (`rouse.wait=wfi,wfe`), is read there by the same code that printed it ([`Arguments`]), and
//! is expanded by host and guest into the same [`Cell`]s: the product of the lists. If a
//! combination makes no sense or the machine can't run it, [`Cell::skip_reason`] returns why.
//! Such a cell is listed as skipped if the dimension that prevents it was named, and left out if
//! that dimension only came with the defaults.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod arguments;
mod cell;
mod choice;
mod command_name;
mod completion;
mod cpus;
mod dimensions;
mod error;
mod guest_states;
mod magnitude;
mod nearest;
mod pace;
mod pair;
mod skip;
mod text;
mod value;
mod wait;
mod words;

pub use arguments::{
    Arguments, CELL_DEADLINE, CHECKPOINT, CORE_MHZ, COST_BRIEF, COST_COLD, DEADLINE, FLOOR,
    GUEST_STATES, KEEP_CPU, Names, OPTIONS, Part, Planted, Program, SEED, SURVEY, Unfit,
    guest_part, keys, read_at_boot,
};
pub use choice::{Choice, OtherImage};
pub use command_name::CommandName;
pub use completion::Completion;
pub use cpuidle::{Hz, Name as Governor, States};
pub use cpus::CpuSet;
pub use dimensions::{COUNT, Cell, DIMENSIONS, Info, Lists, Place, Show, ValueKind};
pub use error::Error;
pub use guest_states::{GuestState, GuestStates};
pub use magnitude::magnitude;
pub use nearest::nearest;
pub use pace::{BALANCED, Limits, PASSES, Pace, PassTime, is_forwards};
pub use pair::{Pair, Pairs};
pub use skip::{Given, Machine, SkipReason};
pub use value::{Dimension, List, Value};
pub use wait::Wait;
pub use words::*;

use dimensions::SLOWEST_FIRST;

/// Prefix of Rouse's own boot arguments.
pub const PREFIX: &str = "rouse.";

/// Plan of a measurement; see the [crate] documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The values of each dimension.
    pub lists: Lists,
    /// Whether cells run once more with time stamps; always a single value.
    pub stages: Dimension<Stages>,
    /// The most wake-ups per cell.
    pub iterations: u32,
    /// Whether a cell may end early, once its passes agree.
    pub settle: bool,
    /// Time that a cell may take besides the requested pauses, in guest milliseconds; 0 for no bound.
    /// `None` selects the default of [`Limits::of`].
    pub cell_ms: Option<u32>,
    /// The part of the cells to measure.
    pub shard: Shard,
    /// The part of that part that one boot measures.
    pub part: Shard,
    /// Whether to report every sample, not only the histogram.
    pub raw: bool,
    /// Whether to report only the table's figures, without histograms and stages.
    pub compact: bool,
    /// Whether to report samples in core cycles, if the guest can measure how many cycles a counter
    /// tick has.
    pub cycles: bool,
    /// Whether to measure cells that need caches even if the machine models none, to try them out.
    pub assume_caches: bool,
    /// Whether the machine is known to lose an interrupt that is acknowledged while an event
    /// arrives; see [`Machine::event_loses_irq`].
    pub event_loses_irq: bool,
}

/// One part of the cells, which are dealt out like cards, in rounds of alternating direction: part `index` of `of`,
/// counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the part, counted from 1.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl Shard {
    /// The most parts into which the cells can be divided.
    pub const MOST: u32 = 10_000;
    /// The single part that has every cell.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether listed cell `number`, counted from 0, belongs to this part.
    const fn has_cell(self, number: usize) -> bool {
        number == self.cell(self.round(number))
    }

    /// Returns the number in the whole list of the cell that this part gets in `round`. If all rounds had the same
    /// direction, one of two parts would get every cell that is slow because of a dimension with two values.
    #[must_use]
    pub const fn cell(self, round: usize) -> usize {
        let place = match round % 2 {
            0 => self.index - 1,
            _ => self.of - self.index,
        };
        round * self.of as usize + place as usize
    }

    /// Returns the round in which cell `number` is dealt out: its number within its part.
    const fn round(self, number: usize) -> usize {
        number / self.of as usize
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            lists: Lists::default(),
            stages: Dimension::default_of(&[Stages::On]),
            iterations: 2000,
            settle: true,
            cell_ms: None,
            shard: Shard::WHOLE,
            part: Shard::WHOLE,
            raw: false,
            compact: false,
            cycles: false,
            assume_caches: false,
            event_loses_irq: false,
        }
    }
}

impl Plan {
    /// Returns the cells, in order. Given the same machine, host and guest expand the same plan to the same
    /// list.
    pub fn cells<'p>(&'p self, machine: &'p Machine) -> impl Iterator<Item = Cell> + 'p {
        let expanded = (0..self.combinations()).map(|number| self.combination(number));
        expanded
            .enumerate()
            .filter(|&(number, ref cell)| self.first_of_its_kind(number, cell))
            .flat_map(|(_, cell)| self.expand_pairs(cell, machine))
            .filter(|cell| self.is_listed(cell, machine))
            .enumerate()
            .filter(|&(number, _)| self.has_cell(number))
            .map(|(_, cell)| cell)
            .filter(|cell| self.is_of_boot(cell, machine))
    }

    /// Whether listed cell `number`, counted from 0, belongs to the plan's part.
    const fn has_cell(&self, number: usize) -> bool {
        self.shard.has_cell(number) && self.part.has_cell(self.shard.round(number))
    }

    /// Whether `cell` belongs to this boot because the boot has the knob settings that the cell
    /// wants; other boots have other settings. The first boot reports the cells that no boot can
    /// run.
    fn is_of_boot(&self, cell: &Cell, machine: &Machine) -> bool {
        let Some(given) = machine.given else {
            return true;
        };
        match cell.skip_reason(machine) {
            None => given.is_wanted_by(cell),
            Some(_) => {
                let first = self.lists.trap.values.iter().next().copied();
                given.host_poll_us == 0 && (given.alone || Some(given.trap) == first)
            }
        }
    }

    /// Whether `cell` runs once more with time stamps. Of the pairs in `all`, only the pair of the first two
    /// CPUs and separately named pairs do so: a map of pairs shows no stages, and stamping every pair would
    /// double the map's time.
    #[must_use]
    pub fn takes_stamps(&self, cell: &Cell) -> bool {
        let wanted = self.stages.values.contains(&Stages::On) && !self.compact;
        let named = cell.pair == Pair::FIRST || self.lists.pair.values.contains(&cell.pair);
        wanted && cell.workload == Workload::Pingpong && named
    }

    /// Whether the running CPU at position `place` may be the sender of a cell, and so measure it.
    #[must_use]
    pub fn may_measure(&self, place: usize) -> bool {
        place == 0
            || self
                .lists
                .pair
                .values
                .iter()
                .any(|pair| pair.may_begin_at(place))
    }

    /// Returns the largest number of requests whose times are drawn in advance for one block of `cell`.
    #[must_use]
    pub fn drawn(&self, cell: &Cell) -> u64 {
        let made = self.iterations.div_ceil(PASSES) + cell.workload.unrecorded();
        let of_pair = if cell.is_open() { made } else { 0 };
        u64::from(of_pair) * u64::from(cell.groups)
    }

    /// Returns the number of combinations in the product of the lists.
    #[must_use]
    pub fn combinations(&self) -> usize {
        self.lists.lengths().iter().product()
    }

    /// Whether dimension `info` applies to any combination.
    #[must_use]
    pub fn uses(&self, info: &Info) -> bool {
        (0..self.combinations()).any(|number| info.applies(&self.combination(number)))
    }

    /// Returns combination `number` of the product, with inapplicable dimensions set to their neutral
    /// values.
    fn combination(&self, mut number: usize) -> Cell {
        let mut at = self.lists.lengths();
        for &dimension in SLOWEST_FIRST.iter().rev() {
            let length = at[dimension];
            at[dimension] = number % length;
            number /= length;
        }
        self.lists.cell_at(&at)
    }

    /// Returns `cell` once for each of the wanted pairs of CPUs. For `all`, skips pairs that are
    /// also named separately, whatever the number of CPUs.
    fn expand_pairs(&self, cell: Cell, machine: &Machine) -> impl Iterator<Item = Cell> + use<'_> {
        let named = &self.lists.pair.values;
        let is_all = |pair: &&Pair| matches!(pair, Pair::All { .. });
        let first_of_all = named.iter().find(is_all).copied();
        let (one, most, seed) = match cell.pair {
            // If there is one CPU, there is no pair; the skip reason reports that.
            Pair::All { .. } if machine.cpus < 2 => (Some(Pair::FIRST), 0, 0),
            Pair::All { most, seed } if first_of_all == Some(cell.pair) => (None, most, seed),
            Pair::All { .. } => (None, 0, 0),
            one @ Pair::Of { .. } => (Some(one), 0, 0),
        };
        let pairs = cell.pairs(machine.cpus).sample(most, seed);
        let unnamed = pairs.filter(|pair| !named.contains(pair));
        one.into_iter()
            .chain(unnamed)
            .map(move |pair| Cell { pair, ..cell })
    }

    /// Whether no earlier combination gives the same cell.
    ///
    /// Cells repeat where a dimension does not apply and is set to its neutral value. Whether a
    /// dimension applies depends only on applicable dimensions, so going back in one dimension is enough
    /// to find the repeated cell. The guest does this at boot, even on simulators, so it must not
    /// check all earlier combinations.
    fn first_of_its_kind(&self, number: usize, cell: &Cell) -> bool {
        let lengths = self.lists.lengths();
        let mut stride = 1;
        SLOWEST_FIRST.iter().rev().all(|&dimension| {
            let (index, step) = (number / stride % lengths[dimension], stride);
            stride *= lengths[dimension];
            let differs = |back| self.combination(number - back * step) != *cell;
            index == 0 || DIMENSIONS[dimension].distinguishes(cell) || (1..=index).all(differs)
        })
    }

    /// Whether a cell is listed: it can run, or the plan names the dimension that prevents it.
    fn is_listed(&self, cell: &Cell, machine: &Machine) -> bool {
        if self.repeats_delivery(cell, machine) {
            return false;
        }
        let Some(reason) = cell.skip_reason(machine) else {
            return !self.is_left_out(cell);
        };
        let lists = &self.lists;
        match reason {
            SkipReason::OtherGuest { .. } => lists.workload.named,
            SkipReason::NeverPolls => lists.wake.named,
            SkipReason::NothingTraps(_) | SkipReason::TrapIsGiven(_) => lists.trap.named,
            SkipReason::OneCpu => !self.is_left_out(cell),
            SkipReason::NoPeriod
            | SkipReason::OffsetToSelf { .. }
            | SkipReason::NoTarget
            | SkipReason::NoCaller
            | SkipReason::NoCommand
            | SkipReason::Offline { .. } => true,
            // Combinations that came with the defaults are dropped: plans for these workloads name
            // the waits that make sense.
            SkipReason::StreamAlone | SkipReason::NoLimit => {
                (lists.wait.named || cell.wait == Wait::Wfe)
                    && (lists.trap.named || cell.trap == Trap::None)
            }
            SkipReason::ShapeNeedsBusy => lists.shape.named && lists.wait.named,
            SkipReason::Unbounded | SkipReason::StreamPeriod { .. } | SkipReason::States(_) => true,
            SkipReason::NoLse | SkipReason::NoWfxt | SkipReason::LosesInterrupts => {
                !self.is_left_out(cell)
            }
            SkipReason::NoiseTakesTurns | SkipReason::FewBystanders { .. } => {
                !self.is_left_out(cell)
            }
            SkipReason::NoBystander => lists.shape.named || cell.workload != Workload::Ipi,
            SkipReason::NoCaches => lists.cache.named,
            // Without a hypervisor, cells do not differ by a hypervisor's poll time.
            SkipReason::NoHypervisor => {
                let polls = cell.host_poll_us != 0 && !lists.host_poll_us.named;
                (lists.trap.named || lists.deliver.named) && !polls
            }
            SkipReason::NotDirect(_)
            | SkipReason::NotDirectGicV2
            | SkipReason::NeighbourInjects => lists.deliver.named,
            SkipReason::NoNeighbour(_) | SkipReason::YieldsForEver => true,
            SkipReason::TrapsTogether(_) | SkipReason::NeverTraps(_) => lists.trap.named,
            SkipReason::OwnRules(_) | SkipReason::NoHostPoll(_) => {
                lists.host_poll_us.named || lists.host_poll.named || lists.hint.named
            }
        }
    }

    /// Whether the cell is left out by default, to keep the list readable: unless more is
    /// requested, broadcasts go only to CPUs that halt, and EL2 polls only in `pingpong`.
    fn is_left_out(&self, cell: &Cell) -> bool {
        let lists = &self.lists;
        let broadcast = cell.shape == Shape::Broadcast && cell.wait != Wait::Wfi;
        let host_polls = cell.host_poll_us != 0 && cell.workload != Workload::Pingpong;
        broadcast && !lists.shape.named || host_polls && !lists.host_poll_us.named
    }

    /// Whether `cell` only repeats the cell with the other delivery, because it delivers nothing or
    /// runs on Linux.
    fn repeats_delivery(&self, cell: &Cell, machine: &Machine) -> bool {
        let first = if machine.under.injects() {
            Deliver::Inject
        } else {
            Deliver::Direct
        };
        let once = cell.workload.is_alone() || cell.workload.is_linux();
        once && cell.deliver != first && !self.lists.deliver.named
    }
}
