// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does work before each sample, and outside of it.

use plan::Cell;

use crate::{cache_eviction, clock, percpu};

/// Work in a loop of samples, before each sample. Each kind of work has its own type, so that a loop without
/// the work has no code for it: code between samples can change the code of the sample by an instruction.
pub trait Before: Copy {
    /// Returns the ticks of the pause that comes first; 0 for no pause.
    fn pause_ticks(&self) -> u64;
    /// Empties the caches, if samples begin cold.
    fn empty_caches(&self);
}

/// A pause, and nothing else.
#[derive(Clone, Copy)]
pub struct Gap(pub u64);

impl Before for Gap {
    #[inline(always)]
    fn pause_ticks(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn empty_caches(&self) {}
}

/// A pause, after which the caches are emptied.
#[derive(Clone, Copy)]
pub struct Cold {
    gap: u64,
    /// Number of CPUs that take part.
    cpus: usize,
}

impl Cold {
    /// Returns the preparation that `cell` asks for.
    pub fn from_cell(cell: &Cell) -> Self {
        Self {
            gap: clock::us_to_ticks(cell.gap_us),
            cpus: 1 + cell.members(percpu::online().count()),
        }
    }
}

impl Before for Cold {
    fn pause_ticks(&self) -> u64 {
        self.gap
    }

    fn empty_caches(&self) {
        cache_eviction::evict_wake_path(self.cpus);
    }
}
