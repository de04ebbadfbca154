// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that a CPU could do while its vCPU waits.

use core::fmt;

use super::{Word, words};

words! {
    /// Activity of a vCPU's neighbour, a second guest on the same CPU.
    Neighbour {
        /// No neighbour.
        None = "none",
        /// The neighbour computes.
        Work = "work",
        /// The neighbour goes through 256 KiB of memory.
        Cache = "cache",
        /// The neighbour goes through 16 KiB: less than a first-level cache.
        Cache16 = "cache:16",
        /// The neighbour goes through 64 KiB.
        Cache64 = "cache:64",
        /// The neighbour goes through 1 MiB.
        Cache1024 = "cache:1024",
        /// The neighbour goes through 4 MiB.
        Cache4096 = "cache:4096",
    }
}

impl Neighbour {
    /// Whether there is a neighbour.
    #[must_use]
    pub const fn is_there(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the KiB of memory that the neighbour goes through.
    #[must_use]
    pub const fn kib(self) -> u32 {
        match self {
            Self::None | Self::Work => 0,
            Self::Cache => 256,
            Self::Cache16 => 16,
            Self::Cache64 => 64,
            Self::Cache1024 => 1024,
            Self::Cache4096 => 4096,
        }
    }
}

words! {
    /// Instruction by which a vCPU gives its CPU to the neighbour, besides a WFI that traps.
    YieldOn {
        /// No instruction.
        None = "none",
        /// A WFE that traps.
        Wfe = "wfe",
    }
}
