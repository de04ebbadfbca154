// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts a CPU's events during its part in a measurement.

use abi::{Counter, Shared};

use crate::tally::{Event, Tally};
use crate::{clock, exits, hypervisor, pmu};

/// Counts of a CPU's events while it took part in a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Counts made by the hypervisor or by a VMM.
    pub exits: [u64; Counter::COUNT],
    /// Counts made by the guest itself.
    pub events: [u64; Event::ALL.len()],
    /// The PMU's cycles and instructions, at EL1 and EL2; see [`crate::pmu`]. `None` if a counter went backwards.
    pub pmu: Option<[u64; 2]>,
    /// Requests sent and interrupts taken, if the cell has a pair: by its sender, by its receiver,
    /// and by all other CPUs.
    pub ends: [u64; 3],
    /// Counts of the neighbours.
    pub shared: [u64; Shared::COUNT],
    /// How long the CPU took part, in ticks.
    pub ticks: u64,
}

impl Counts {
    /// Counts that are all zero.
    pub const ZERO: Self = Self {
        exits: [0; Counter::COUNT],
        events: [0; Event::ALL.len()],
        pmu: Some([0; 2]),
        ends: [0; 3],
        shared: [0; Shared::COUNT],
        ticks: 0,
    };

    /// Returns the counts so far of this CPU, which owns `tally`.
    pub fn now(tally: &Tally) -> Self {
        Self {
            exits: exits::read_counts(),
            events: Event::ALL.map(|(event, _)| tally.get(event)),
            pmu: Some(pmu::read_counts()),
            ends: [0; 3],
            shared: if hypervisor::has_had_neighbour() {
                hypervisor::neighbour_counts()
            } else {
                [0; Shared::COUNT]
            },
            ticks: clock::now(),
        }
    }

    /// Adds the counts from `start` to `end`.
    pub fn add(&mut self, start: &Self, end: &Self) {
        for (n, sum) in self.exits.iter_mut().enumerate() {
            *sum += end.exits[n] - start.exits[n];
        }
        for (n, sum) in self.events.iter_mut().enumerate() {
            *sum += end.events[n] - start.events[n];
        }
        self.pmu = self.pmu.and_then(|sums| {
            let ([cycles, insns], [to_cycles, to_insns]) = (start.pmu?, end.pmu?);
            Some([
                sums[0] + to_cycles.checked_sub(cycles)?,
                sums[1] + to_insns.checked_sub(insns)?,
            ])
        });
        for (n, sum) in self.ends.iter_mut().enumerate() {
            *sum += end.ends[n] - start.ends[n];
        }
        for (n, sum) in self.shared.iter_mut().enumerate() {
            *sum += end.shared[n] - start.shared[n];
        }
        self.ticks += end.ticks - start.ticks;
    }
}
