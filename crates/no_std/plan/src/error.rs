// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in boot arguments.

use core::fmt;

use cpuidle::Misread;

use crate::words::family;
use crate::{GuestStates, PREFIX, Shard, magnitude};

/// An error in a plan's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<'a> {
    /// There is no such argument.
    UnknownKey {
        /// Name as given.
        key: &'a str,
        /// The nearest argument.
        nearest: &'static str,
    },
    /// The argument has no such value.
    UnknownName {
        /// Argument.
        key: &'a str,
        /// Value as given.
        word: &'a str,
        /// The nearest value.
        nearest: &'static str,
    },
    /// The value is not a number.
    Count {
        /// Argument.
        key: &'a str,
        /// Value as given.
        word: &'a str,
    },
    /// The dimension has no such value.
    UnknownWord {
        /// Dimension.
        key: &'a str,
        /// Value as given.
        word: &'a str,
        /// Values that the dimension has.
        known: &'static [&'static str],
    },
    /// The value is not a number, or is out of range.
    Number {
        /// Dimension.
        key: &'a str,
        /// Value as given.
        word: &'a str,
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// The value is not a set of CPUs.
    Cpus {
        /// Dimension.
        key: &'a str,
        /// Value as given.
        word: &'a str,
    },
    /// The value is not a pair of CPUs.
    Pair {
        /// Dimension.
        key: &'a str,
        /// Value as given.
        word: &'a str,
    },
    /// The value is not the name of a command.
    CommandName {
        /// Dimension.
        key: &'a str,
        /// Value as given.
        word: &'a str,
    },
    /// The value is not a list of a guest's idle states.
    GuestStates {
        /// Argument.
        key: &'a str,
        /// Value as given.
        word: &'a str,
    },
    /// The value is not a table of idle states.
    States {
        /// Dimension.
        key: &'a str,
        /// Mistake in the table.
        why: Misread<'a>,
    },
    /// There are more values than a list can hold.
    TooMany {
        /// Dimension.
        key: &'a str,
        /// The most values that a list can hold.
        most: usize,
    },
    /// The value is not a valid shard; `2/3` is a valid one.
    Shard {
        /// Value as given.
        word: &'a str,
        /// The nearest valid shard.
        nearest: Shard,
    },
    /// There are several words for a dimension that has one value per boot.
    Several {
        /// Dimension.
        key: &'a str,
        /// Words as given.
        words: &'a str,
    },
    /// The argument asks for a feature that only test images have.
    Unplanted {
        /// Argument.
        key: &'static str,
        /// Value as given; empty if it has none.
        word: &'static str,
    },
    /// The argument takes no value, and was given one.
    NoValue(&'a str),
    /// The argument's value is missing.
    NeedsValue(&'a str),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, nearest } => write!(
                f,
                "there is no boot argument `{PREFIX}{key}`; the nearest is `{PREFIX}{nearest}`"
            ),
            Self::UnknownName { key, word, nearest } => {
                write!(f, "{key}: there is no `{word}`; the nearest is `{nearest}`")
            }
            Self::Several { key, words } => write!(
                f,
                "{key}: `{words}` is more than a boot has; name one word, and boot again for the other"
            ),
            Self::Count { key, word } => write!(
                f,
                "{key}: `{word}` is not a number from 0 to {}; write it in decimal",
                u64::MAX
            ),
            Self::UnknownWord { key, word, known } => {
                write!(f, "{key}: there is no `{word}`; use all")?;
                let mut last = "";
                for known in *known {
                    // A family's own `all` comes before its members.
                    let family = family(known);
                    if family != last {
                        write!(f, ", {family}all")?;
                        last = family;
                    }
                    write!(f, ", {known}")?;
                }
                Ok(())
            }
            Self::Number {
                key,
                word,
                min,
                max,
            } => {
                write!(f, "{key}: `{word}` is not a number from {min} to {max}; ")?;
                match magnitude(word) {
                    Some(value) => {
                        let nearest = value.clamp((*min).into(), (*max).into());
                        write!(f, "the nearest is {nearest}")
                    }
                    None => {
                        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                        match magnitude(number) {
                            Some(_) => write!(f, "write {number}: the option's name has the unit"),
                            None => f.write_str("use one"),
                        }
                    }
                }
            }
            Self::Shard { word, nearest } => write!(
                f,
                "shard: `{word}` is not a part I/N with I from 1 to N, N to {}; \
                 the nearest is {nearest}",
                Shard::MOST
            ),
            Self::Cpus { key, word } => write!(
                f,
                "{key}: `{word}` is not a set of CPUs; use all, none, numbers from 0 to 511 \
                 like 0-3+6, or a mask like 0x4f"
            ),
            Self::Pair { key, word } => write!(
                f,
                "{key}: `{word}` is not a pair of CPUs; use two different numbers from 0 to 511 like 4,5, \
                 several joined by + like 4,5+0,4, or all, all:100, all:100@SEED"
            ),
            Self::CommandName { key, word } => write!(
                f,
                "{key}: `{word}` is not a name of a command; use 1 to 24 letters, digits, -, _ and ."
            ),
            Self::GuestStates { key, word } => write!(
                f,
                "{key}: `{word}` is no list of idle states; use {}",
                GuestStates::FORM
            ),
            Self::States { key, why } => write!(f, "{key}: {why}"),
            Self::Unplanted { key, word } => {
                let equals = if word.is_empty() { "" } else { "=" };
                write!(
                    f,
                    "{PREFIX}{key}{equals}{word} is for tests, and this image is for measurements; give the same \
                     arguments to `cargo xtask image --append` (or `run`), which packs the other one, or leave it out"
                )
            }
            Self::NoValue(key) => write!(f, "{key}: it has no value; leave out `=` and the rest"),
            Self::NeedsValue(key) => {
                write!(f, "{key}: its value is missing; write {PREFIX}{key}=VALUE")
            }
            Self::TooMany { key, most } => write!(f, "{key}: more than {most} values"),
        }
    }
}
