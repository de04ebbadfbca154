// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that a dimension can have: words, numbers, sets of CPUs, pairs of CPUs, tables of idle
//! states.

use core::fmt;

use arrayvec::ArrayVec;

use crate::error::Error;
use crate::{CpuSet, Hz, Pair, States, ValueKind, Word};

/// A list of a dimension's values, with room for the most that can be named.
pub type List<T> = ArrayVec<T, MOST>;

/// The most values that a list holds: no dimension has more words.
pub const MOST: usize = 24;

/// A value of a dimension.
pub trait Value: Copy + PartialEq + fmt::Display + 'static {
    /// Range of valid values.
    type Range: Copy;

    /// Type of the values, for the host.
    const KIND: ValueKind;

    /// The words of the type; empty if its values are not words.
    const WORDS: &'static [&'static str] = &[];

    /// Separator between two values.
    const SEPARATOR: char = ',';

    /// Reads a value.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the valid values.
    fn read<'a>(key: &'a str, word: &'a str, range: Self::Range) -> Result<Self, Error<'a>>;

    /// Returns the values that `word` stands for, if it stands for several.
    fn expand_word(_word: &str) -> impl Iterator<Item = Self> {
        core::iter::empty()
    }

    /// Returns the sort key of the value.
    fn sort_key(self) -> u64;
}

impl<W: Word> Value for W {
    type Range = ();

    const KIND: ValueKind = ValueKind::Words;
    const WORDS: &'static [&'static str] = {
        assert!(W::ALL.len() <= MOST, "a list does not hold all words");
        W::NAMES
    };

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        let known = Self::WORDS;
        Self::parse(word).ok_or(Error::UnknownWord { key, word, known })
    }

    fn expand_word(word: &str) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |value| value.is_meant_by(word))
    }

    fn sort_key(self) -> u64 {
        let mut all = Self::ALL.iter();
        all.position(|other| *other == self)
            .unwrap_or(Self::ALL.len()) as u64
    }
}

impl Value for u32 {
    /// The smallest and the largest valid number.
    type Range = (Self, Self);

    const KIND: ValueKind = ValueKind::Numbers;

    fn read<'a>(key: &'a str, word: &'a str, (min, max): (Self, Self)) -> Result<Self, Error<'a>> {
        read_number(key, word, min, max)
    }

    fn sort_key(self) -> u64 {
        self.into()
    }
}

impl Value for CpuSet {
    type Range = ();

    const KIND: ValueKind = ValueKind::Cpus;

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        Self::parse(word).ok_or(Error::Cpus { key, word })
    }

    fn sort_key(self) -> u64 {
        Self::sort_key(&self)
    }
}

impl Value for Pair {
    type Range = ();

    const KIND: ValueKind = ValueKind::Pairs;

    /// A pair contains a comma, so pairs are joined by `+`, like the CPUs of a set.
    const SEPARATOR: char = '+';

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        Self::parse(word).ok_or(Error::Pair { key, word })
    }

    fn sort_key(self) -> u64 {
        Self::sort_key(self)
    }
}

impl Value for Hz {
    type Range = ();

    const KIND: ValueKind = ValueKind::Numbers;
    const WORDS: &'static [&'static str] = Self::WORDS;

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        let known = Self::WORDS;
        Self::parse(word).ok_or(Error::UnknownWord { key, word, known })
    }

    fn expand_word(word: &str) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |_| word == "all")
    }

    fn sort_key(self) -> u64 {
        self.get().into()
    }
}

impl Value for States {
    type Range = ();

    const KIND: ValueKind = ValueKind::Tables;

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        Self::parse(word).map_err(|why| Error::States { key, why })
    }

    fn sort_key(self) -> u64 {
        Self::sort_key(&self)
    }
}

/// Reads a number from `min` to `max`.
pub(crate) fn read_number<'a>(
    key: &'a str,
    word: &'a str,
    min: u32,
    max: u32,
) -> Result<u32, Error<'a>> {
    let value = word.parse().ok();
    value
        .filter(|value| (min..=max).contains(value))
        .ok_or(Error::Number {
            key,
            word,
            min,
            max,
        })
}

/// Reads a switch, which must not have a value.
pub(crate) fn read_switch<'a>(key: &'a str, value: &str) -> Result<bool, Error<'a>> {
    if value.is_empty() {
        Ok(true)
    } else {
        Err(Error::NoValue(key))
    }
}

/// The values of one dimension, and whether they were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension<T> {
    /// Values, never empty.
    pub values: List<T>,
    /// Whether the values were requested; if so, cells that can't run are listed as skipped.
    pub named: bool,
}

impl<T: Value> Dimension<T> {
    pub(crate) fn default_of(values: &[T]) -> Self {
        Self {
            values: values.iter().copied().collect(),
            named: false,
        }
    }

    /// Reads `values`, separated by [`Value::SEPARATOR`], and drops repetitions.
    pub(crate) fn read<'a>(
        &mut self,
        key: &'a str,
        values: &'a str,
        range: T::Range,
    ) -> Result<(), Error<'a>> {
        self.named = true;
        self.values.clear();
        for word in values.split(T::SEPARATOR) {
            let mut several = T::expand_word(word).peekable();
            if several.peek().is_none() {
                self.add_value(key, T::read(key, word, range)?)?;
            }
            several.try_for_each(|value| self.add_value(key, value))?;
        }
        Ok(())
    }

    /// Adds a value unless the list already has it.
    fn add_value<'a>(&mut self, key: &'a str, value: T) -> Result<(), Error<'a>> {
        if self.values.contains(&value) {
            return Ok(());
        }
        let pushed = self.values.try_push(value);
        pushed.map_err(|_| Error::TooMany { key, most: MOST })
    }

    /// Prints the values as a boot argument if they were named.
    pub(crate) fn print_argument(&self, f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
        if !self.named {
            return Ok(());
        }
        write!(f, "{}{key}", crate::PREFIX)?;
        for (index, value) in self.values.iter().enumerate() {
            let separator = if index == 0 { '=' } else { T::SEPARATOR };
            write!(f, "{separator}{value}")?;
        }
        f.write_str(" ")
    }
}
