// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of instructions by level. Bookkeeping instructions among them are also counted separately.

/// Kinds of bookkeeping, that is, of instructions that are executed for the measurement and not for the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Counts that the guest and the hypervisor keep.
    Statistics,
    /// The read of the clock that ends the sample.
    Clock,
    /// The flag by which an interrupt handler informs a busy CPU that the handler ran.
    Flags,
    /// The loop that repeats the task's work.
    Loop,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Statistics, Self::Clock, Self::Flags, Self::Loop];

    /// Returns the name of the class in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statistics => "statistics",
            Self::Clock => "clock",
            Self::Flags => "flags",
            Self::Loop => "loop",
        }
    }
}

/// Number of exception levels.
const LEVELS: usize = 4;

/// Numbers of instructions. The levels add up to the total. The classes cover only a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counts {
    /// Instructions by exception level, from EL0 to EL3.
    pub levels: [u64; LEVELS],
    /// Bookkeeping instructions by [`Class`].
    pub classes: [u64; Class::ALL.len()],
}

impl Counts {
    /// How many numbers a value contains.
    pub const LEN: usize = LEVELS + Class::ALL.len();

    /// Creates counts from an array, in which the levels come before the classes.
    #[must_use]
    pub fn from_array(all: [u64; Self::LEN]) -> Self {
        let mut counts = Self::default();
        counts.levels.copy_from_slice(&all[..LEVELS]);
        counts.classes.copy_from_slice(&all[LEVELS..]);
        counts
    }

    /// Returns all numbers, levels first.
    #[must_use]
    pub fn to_array(self) -> [u64; Self::LEN] {
        let mut all = [0; Self::LEN];
        all[..LEVELS].copy_from_slice(&self.levels);
        all[LEVELS..].copy_from_slice(&self.classes);
        all
    }

    /// Returns the number of all instructions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// Returns the number of instructions that are bookkeeping.
    #[must_use]
    pub fn bookkeeping(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Returns the sum of these counts and `other`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (one, other) = (self.to_array(), other.to_array());
        Self::from_array(std::array::from_fn(|n| one[n] + other[n]))
    }

    /// Multiplies every count by `times`.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self::from_array(self.to_array().map(|number| number * times))
    }

    /// Subtracts `before`.
    ///
    /// # Panics
    /// If any number in `before` is larger. This never happens in valid data, as counts only grow.
    #[must_use]
    pub fn minus(self, before: Self) -> Self {
        self.checked_minus(before).expect("counts only grow")
    }

    /// Subtracts `before`. Returns `None` if any number in `before` is larger.
    #[must_use]
    pub fn checked_minus(self, before: Self) -> Option<Self> {
        let (now, before) = (self.to_array(), before.to_array());
        let mut all = [0; Self::LEN];
        for (n, number) in all.iter_mut().enumerate() {
            *number = now[n].checked_sub(before[n])?;
        }
        Some(Self::from_array(all))
    }
}
