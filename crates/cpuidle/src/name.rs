// SPDX-License-Identifier: MIT OR Apache-2.0
//! Governors by name, chosen at run time.
//!
//! An enum and not a trait object, so that `select` is a jump table and its
//! branches can be compiled into the idle loop.

use core::fmt;

use wait::governor::Tunables;

use crate::{Choice, Fixed, Governor, Haltpoll, Moment, Outcome, Table};

/// A governor's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// `haltpoll`.
    Haltpoll,
    /// `fixed:<us>`.
    Fixed {
        /// How long to poll, us; at most [`Name::MAX_LIMIT_US`].
        limit_us: u32,
    },
}

impl Name {
    /// Every word that [`Name::parse`] knows, for help texts.
    pub const WORDS: &'static str = "haltpoll, fixed:<us>";
    /// Longest fixed poll limit, us: a second.
    pub const MAX_LIMIT_US: u32 = 1_000_000;

    /// The governor with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "haltpoll" => Some(Self::Haltpoll),
            _ => {
                let limit_us = text.strip_prefix("fixed:")?.parse().ok()?;
                (limit_us <= Self::MAX_LIMIT_US).then_some(Self::Fixed { limit_us })
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Haltpoll => f.pad("haltpoll"),
            Self::Fixed { limit_us } => write!(f, "fixed:{limit_us}"),
        }
    }
}

/// A governor that was chosen by name.
#[derive(Clone, Copy, Debug)]
pub enum Selected {
    /// `haltpoll`.
    Haltpoll(Haltpoll),
    /// `fixed:<us>`.
    Fixed(Fixed),
}

impl Selected {
    /// The governor with this name, which has learnt nothing yet.
    #[must_use]
    pub const fn new(name: Name) -> Self {
        match name {
            Name::Haltpoll => Self::Haltpoll(Haltpoll::new(Tunables::GUEST)),
            Name::Fixed { limit_us } => Self::Fixed(Fixed::new(limit_us as u64 * 1000)),
        }
    }
}

impl Governor for Selected {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        match self {
            Self::Haltpoll(governor) => governor.select(states, moment, next_timer),
            Self::Fixed(governor) => governor.select(states, moment, next_timer),
        }
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        match self {
            Self::Haltpoll(governor) => governor.reflect(states, outcome),
            Self::Fixed(governor) => governor.reflect(states, outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for word in ["haltpoll", "fixed:0", "fixed:1000000"] {
            let name = Name::parse(word).unwrap();
            assert_eq!(name.to_string(), word);
        }
        for word in [
            "",
            "fixed",
            "fixed:",
            "fixed:-1",
            "fixed:1000001",
            "Haltpoll",
        ] {
            assert_eq!(Name::parse(word), None, "{word}");
        }
    }
}
