// SPDX-License-Identifier: MIT OR Apache-2.0
//! The neighbour of a CPU's first guest: a second guest, which runs while the first guest waits, or
//! in slices of the first guest's time.

/// Work of the neighbour of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbour {
    /// No neighbour: the vCPU has the CPU to itself.
    #[default]
    None,
    /// The neighbour computes, and touches no memory except a counter.
    Work,
    /// The neighbour goes through a number of KiB of its memory, line by line: a power of two, from
    /// 4 to [`MAX_KIB`].
    Cache(u32),
    /// For tests: the neighbour tries forbidden operations, and checks whether its own state was changed.
    Hostile,
}

/// Maximum amount of memory that a neighbour goes through, in KiB.
pub const MAX_KIB: u32 = 4096;
/// Minimum amount of memory that a neighbour goes through, in KiB.
pub const MIN_KIB: u32 = 4;

/// Number of instructions in a unit of `work`, and number of cache lines in a unit of `cache`.
pub const UNIT: u64 = 64;

/// Longest slice in ms: other CPUs may have to wait that long for this CPU.
pub const MAX_SLICE_MS: u64 = 100;

impl Neighbour {
    /// Returns the word that stands for the work in a call.
    #[must_use]
    pub const fn encode(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Work => 1,
            Self::Cache(kib) => 2 | (kib as u64) << 8,
            Self::Hostile => 3,
        }
    }

    /// Decodes `word`; returns `None` if it is not valid.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        let kib = word >> 8;
        match (word as u8, kib) {
            (0, 0) => Some(Self::None),
            (1, 0) => Some(Self::Work),
            (3, 0) => Some(Self::Hostile),
            (2, kib) if Self::may_touch(kib) => Some(Self::Cache(kib as u32)),
            _ => None,
        }
    }

    /// Whether a neighbour may go through `kib` KiB of memory.
    #[must_use]
    pub const fn may_touch(kib: u64) -> bool {
        kib >= MIN_KIB as u64 && kib <= MAX_KIB as u64 && kib.is_power_of_two()
    }

    /// Returns the amount of memory that the neighbour goes through, in KiB.
    #[must_use]
    pub const fn kib(self) -> u32 {
        match self {
            Self::None | Self::Work | Self::Hostile => 0,
            Self::Cache(kib) => kib,
        }
    }
}

numbered! {
    /// Counts of the neighbour of a vCPU.
    Shared {
        /// Units of work that the neighbour has done, each [`UNIT`] instructions or lines.
        Work = "neighbour.work",
        /// Ticks for which the neighbour ran because the vCPU waited.
        Given = "neighbour.given",
        /// Ticks for which the neighbour ran although the vCPU did not wait.
        Taken = "neighbour.taken",
        /// Turns: each is a switch to the neighbour and back.
        Turns = "neighbour.turns",
        /// Turns that were slices in which the vCPU did not wait.
        Slices = "neighbour.slices",
        /// The neighbour's exceptions to EL2 except interrupts. `work` and `cache` take none.
        Trapped = "neighbour.trapped",
        /// Number of times that the neighbour found a register or a line of its memory changed.
        Damaged = "neighbour.damaged",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_what_was_encoded() {
        let all = [
            Neighbour::None,
            Neighbour::Work,
            Neighbour::Cache(MIN_KIB),
            Neighbour::Cache(MAX_KIB),
            Neighbour::Hostile,
        ];
        for one in all {
            assert_eq!(Neighbour::decode(one.encode()), Some(one));
        }
        for word in [
            4,
            0x100,
            0x101,
            2,
            2 | 3 << 8,
            2 | 24 << 8,
            2 | 8192 << 8,
            u64::MAX,
        ] {
            assert_eq!(Neighbour::decode(word), None, "{word:#x}");
        }
    }
}
