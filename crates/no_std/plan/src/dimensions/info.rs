// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of dimensions, for the host.

use core::fmt;

use super::{Cell, DIMENSIONS};
use crate::error::Error;
use crate::words;
use crate::{Machine, SkipReason};

/// A dimension, described for the host's options, records, tables and charts.
#[derive(Debug)]
pub struct Info {
    /// The dimension's name: the option, the boot argument and, with `_` for `-`, the field of records and
    /// results.
    pub key: &'static str,
    /// Other names of the option.
    pub aliases: &'static [&'static str],
    /// Help of the option: its purpose, words, unit and default. `{words}` stands for the words,
    /// `{governor}` for the words of the family `governor:`; see [`Info::family`].
    pub help: &'static str,
    /// The dimension's words; empty if its values are not words.
    pub words: &'static [&'static str],
    /// Type of the dimension's values.
    pub kind: ValueKind,
    /// Where records and results store the dimension.
    pub place: Place,
    /// How tables and charts show the dimension.
    pub show: Show,
    /// Whether the dimension applies to the cell.
    pub(super) applies: fn(&Cell) -> bool,
    /// Whether a normalised cell has the value that the list has, so that each of the list's values gives another cell.
    pub(super) takes_listed: fn(&Cell) -> bool,
    /// Returns the reason that forbids the dimension's value, if there is one. The dimension must apply.
    pub(super) contradicts: fn(&Cell, &Machine) -> Option<SkipReason>,
    pub(super) set: for<'a> fn(&mut Cell, &'a str, &'a str) -> Result<(), Error<'a>>,
    pub(super) write: fn(&Cell, &mut fmt::Formatter<'_>) -> fmt::Result,
    pub(super) is_neutral: fn(&Cell) -> bool,
    pub(super) rank: fn(&Cell) -> u64,
}

/// Type of a dimension's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// One of a fixed set of words.
    Words,
    /// Numbers: microseconds, milliseconds, hertz, or counts.
    Numbers,
    /// Sets of CPUs: `0-3+6`, `0x4f`, `all`, `none`.
    Cpus,
    /// Two CPUs, sender and receiver: `4,5`. Several pairs are joined by `+`. `all` is every pair.
    Pairs,
    /// Tables of idle states: `poll+wfi:2:10`, `arm_poll_idle:100`.
    Tables,
    /// Names of commands.
    Names,
}

/// Where records and results store a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field of every cell.
    Always,
    /// A field of cells whose value is not the neutral one.
    Unusual,
    /// In `system`, for the cells to which the dimension applies: the dimensions of the workloads on the
    /// executor.
    System,
}

/// How tables and charts show a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// In the table's title: there is one table for each value.
    Title,
    /// A column of words.
    Column,
    /// A column of words, if they distinguish cells.
    IfDifferent,
    /// A column of words if they distinguish cells; charts also show the dimension under this name if
    /// its value is not neutral.
    Special(&'static str),
    /// A column of microseconds if some value is not 0, and a chart over the dimension's values.
    Sweep {
        /// Title of the column.
        column: &'static str,
        /// Title of the chart.
        chart: &'static str,
        /// Other charts show the cells with this value, or with the nearest one if there is no such
        /// cell.
        preferred: u32,
    },
}

impl Info {
    /// Returns the dimension called `key`.
    #[must_use]
    pub fn find(key: &str) -> Option<&'static Self> {
        DIMENSIONS.iter().find(|info| info.key == key)
    }

    /// Returns the words of a family like `governor:`, without that prefix; the words without a family if
    /// `family` is empty.
    pub fn family(&self, family: &str) -> impl Iterator<Item = &'static str> {
        let words = self.words.iter().copied();
        words.filter_map(move |word| {
            word.strip_prefix(family)
                .filter(|_| words::family(word) == family)
        })
    }

    /// Whether the dimension applies to `cell`.
    #[must_use]
    pub fn applies(&self, cell: &Cell) -> bool {
        (self.applies)(cell)
    }

    /// Whether each of the values that a list of this dimension may have gives another cell, if the cell's other
    /// dimensions stay the same. If not, they may or may not.
    pub(crate) fn distinguishes(&self, cell: &Cell) -> bool {
        (self.takes_listed)(cell)
    }

    /// Whether `cell` has the dimension's neutral value.
    #[must_use]
    pub fn is_neutral(&self, cell: &Cell) -> bool {
        (self.is_neutral)(cell)
    }

    /// Whether records and results of `cell` have a field for the dimension.
    #[must_use]
    pub fn is_told(&self, cell: &Cell) -> bool {
        match self.place {
            Place::Always => true,
            Place::Unusual => !self.is_neutral(cell),
            Place::System => self.applies(cell),
        }
    }

    /// Returns the dimension's value in `cell`, as text.
    #[must_use]
    pub fn text<'c>(&'c self, cell: &'c Cell) -> impl fmt::Display + use<'c> {
        Text { info: self, cell }
    }

    /// Returns the sort key of the value in `cell`; for a number, the number itself.
    #[must_use]
    pub fn rank(&self, cell: &Cell) -> u64 {
        (self.rank)(cell)
    }

    /// Sets the dimension in `cell` to a value that [`Self::text`] printed.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the word and the valid values.
    pub fn set<'a>(&'a self, cell: &mut Cell, word: &'a str) -> Result<(), Error<'a>> {
        (self.set)(cell, self.key, word)
    }

    /// Returns the reason that forbids the dimension's value in `cell`, to which the dimension applies.
    pub(crate) fn contradicts(&self, cell: &Cell, machine: &Machine) -> Option<SkipReason> {
        (self.contradicts)(cell, machine)
    }
}

struct Text<'c> {
    info: &'c Info,
    cell: &'c Cell,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.info.write)(self.cell, f)
    }
}
