// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name of a command that runs in Linux, as the guest.

use core::fmt;

use arrayvec::ArrayString;

use crate::error::Error;
use crate::{Value, ValueKind};

/// The most characters of a name.
const MOST: usize = 24;

/// A name of at most 24 characters: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandName(ArrayString<MOST>);

impl CommandName {
    /// No command.
    pub const NONE: Self = Self(ArrayString::new_const());
    /// The word for no command.
    const WORD: &'static str = "none";

    /// Reads a name; `None` if `text` is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match text {
            Self::WORD => Some(Self::NONE),
            "" => None,
            text if text.bytes().all(of_name) => ArrayString::from(text).ok().map(Self),
            _ => None,
        }
    }
}

impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_str() {
            "" => Self::WORD,
            name => name,
        })
    }
}

impl Value for CommandName {
    type Range = ();

    const KIND: ValueKind = ValueKind::Names;

    fn read<'a>(key: &'a str, word: &'a str, (): ()) -> Result<Self, Error<'a>> {
        Self::parse(word).ok_or(Error::CommandName { key, word })
    }

    /// Returns the first eight characters. Names that share them keep their order in the plan.
    fn sort_key(self) -> u64 {
        let mut first = [0; 8];
        first
            .iter_mut()
            .zip(self.0.bytes())
            .for_each(|(place, byte)| *place = byte);
        u64::from_be_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_words() {
        let name = |text| CommandName::parse(text).map(|name| name.to_string());
        assert_eq!(name("perf-pipe"), Some("perf-pipe".into()));
        assert_eq!(name("none"), Some("none".into()));
        assert_eq!(CommandName::parse("none"), Some(CommandName::NONE));
        let long = "a".repeat(25);
        for wrong in ["", "a b", "a,b", "a=b", "ä", &long] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn their_order_is_the_alphabets() {
        let place = |text| CommandName::parse(text).unwrap().sort_key();
        assert!(place("hackbench") < place("perf") && place("perf") < place("perf-pipe"));
        assert_eq!(CommandName::NONE.sort_key(), 0);
    }
}
