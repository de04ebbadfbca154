// SPDX-License-Identifier: MIT OR Apache-2.0
//! Storage for the long lists of a description.
//!
//! Each list has an entry per CPU, which is more than a stack should hold. So a reader writes the
//! lists into its caller's variable and refers to them.

use arrayvec::ArrayVec;

use crate::claims::{Claimed, END};
use crate::{Cpu, Enable, MAX_CPUS, Region};

/// Storage for the lists of one machine.
#[derive(Debug)]
pub struct Room {
    /// The CPUs, in the order of the description.
    pub cpus: ArrayVec<Cpu, MAX_CPUS>,
    /// Number of described CPUs that do not fit.
    pub ignored: usize,
    /// Ranges of redistributor frames.
    pub redistributors: ArrayVec<Region, MAX_CPUS>,
    /// Addresses that devices have claimed.
    pub claimed: Claimed,
    /// Where physical addresses end.
    pub end: u64,
    /// Affinity of the CPU that has to be first, if any.
    first: Option<u64>,
}

impl Room {
    /// Returns storage with empty lists.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cpus: ArrayVec::new_const(),
            ignored: 0,
            redistributors: ArrayVec::new_const(),
            claimed: Claimed::new_const(),
            end: END,
            first: None,
        }
    }

    /// Makes the running CPU, with affinity `mpidr`, the first in the list that will be read.
    pub const fn begin_with(&mut self, mpidr: u64) -> &mut Self {
        self.first = Some(mpidr);
        self
    }

    /// Bounds devices and RAM by `end`, where the CPU's physical addresses end.
    pub fn below(&mut self, end: u64) -> &mut Self {
        self.end = end.min(END);
        self
    }

    /// Empties the lists before a description is read.
    pub fn clear(&mut self) {
        self.cpus.clear();
        self.redistributors.clear();
        self.ignored = 0;
    }

    /// Adds a CPU, if there is room for it.
    pub fn add(&mut self, cpu: Cpu) {
        if self.cpus.try_push(cpu).is_err() {
            self.ignored += 1;
        }
    }

    /// Moves the CPU of [`Self::begin_with`] to the front, after all CPUs have been read. If the list lacks
    /// that CPU, adds it there. In a full list, it replaces the last CPU.
    pub fn sort(&mut self) {
        let Some(mpidr) = self.first else { return };
        match self.cpus.iter().position(|cpu| cpu.mpidr == mpidr) {
            Some(index) => self.cpus[..=index].rotate_right(1),
            None => {
                // The CPU of `begin_with` is running, and need not be started.
                let enable = Enable::Held;
                if self.cpus.is_full() {
                    self.cpus.pop();
                    self.ignored += 1;
                }
                self.cpus.insert(0, Cpu { mpidr, enable });
            }
        }
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}
