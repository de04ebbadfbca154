// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which CPU a device interrupts.

use core::fmt;

use crate::error::Error;
use crate::value::read_number;
use crate::{Value, ValueKind};

/// How many of a hundred requests a device completes on the CPU that submitted them. The remaining
/// requests complete on the next CPU, which wakes the submitting CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion(u32);

impl Completion {
    /// Every request completes on the CPU that submitted it.
    pub const SAME: Self = Self(100);
    /// No request completes on the CPU that submitted it.
    pub const OTHER: Self = Self(0);

    /// The two ends of the range, with the words that also name them.
    const ENDS: [(&str, Self); 2] = [("same", Self::SAME), ("other", Self::OTHER)];

    /// Returns the percentage, 0 to 100.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Value for Completion {
    type Range = ();

    const KIND: ValueKind = ValueKind::Numbers;

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        let known = Self::ENDS.iter().find(|(name, _)| *name == word);
        match known {
            Some((_, value)) => Ok(*value),
            None => read_number(key, word, 0, 100).map(Self),
        }
    }

    fn expand_word(word: &str) -> impl Iterator<Item = Self> {
        let ends = Self::ENDS.iter().map(|(_, value)| *value);
        ends.filter(move |_| word == "all")
    }

    fn sort_key(self) -> u64 {
        self.0.into()
    }
}
