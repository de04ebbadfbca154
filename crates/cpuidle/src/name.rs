// SPDX-License-Identifier: MIT OR Apache-2.0
//! Governors by name, chosen at run time.
//!
//! An enum and not a trait object, so that `select` is a jump table and its
//! branches can be compiled into the idle loop.

use core::fmt;

use wait::governor::Tunables;

use crate::{
    Choice, Fixed, Governor, Haltpoll, Ladder, Menu, Moment, Outcome, Table, Teo, TeoUtil,
};

/// A governor's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// `menu`.
    Menu,
    /// `teo`: the newest.
    Teo,
    /// `teo-6.2`: that of early 2023.
    Teo62,
    /// `teo-util`: that with util-awareness.
    TeoUtil,
    /// `ladder`.
    Ladder,
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
    pub const WORDS: &'static str = "menu, teo, teo-6.2, teo-util, ladder, haltpoll, fixed:<us>";
    /// The governors that have no parameter.
    pub const PLAIN: [Self; 6] = [
        Self::Menu,
        Self::Teo,
        Self::Teo62,
        Self::TeoUtil,
        Self::Ladder,
        Self::Haltpoll,
    ];
    /// Longest fixed poll limit, us: a second.
    pub const MAX_LIMIT_US: u32 = 1_000_000;

    /// The governor with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(limit) = text.strip_prefix("fixed:") {
            let limit_us = limit.parse().ok()?;
            return (limit_us <= Self::MAX_LIMIT_US).then_some(Self::Fixed { limit_us });
        }
        let mut plain = Self::PLAIN.into_iter();
        plain.find(|name| name.word() == text)
    }

    /// The name without a parameter.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Menu => "menu",
            Self::Teo => "teo",
            Self::Teo62 => "teo-6.2",
            Self::TeoUtil => "teo-util",
            Self::Ladder => "ladder",
            Self::Haltpoll => "haltpoll",
            Self::Fixed { .. } => "fixed",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { limit_us } => write!(f, "{}:{limit_us}", self.word()),
            _ => f.pad(self.word()),
        }
    }
}

/// A governor that was chosen by name.
#[derive(Clone, Copy, Debug)]
pub enum Selected {
    /// `menu`.
    Menu(Menu),
    /// `teo`.
    Teo(Teo),
    /// `teo-6.2` or `teo-util`.
    TeoUtil(TeoUtil),
    /// `ladder`.
    Ladder(Ladder),
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
            Name::Menu => Self::Menu(Menu::new()),
            Name::Teo => Self::Teo(Teo::new()),
            Name::Teo62 => Self::TeoUtil(TeoUtil::new(false)),
            Name::TeoUtil => Self::TeoUtil(TeoUtil::new(true)),
            Name::Ladder => Self::Ladder(Ladder::new()),
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
            Self::Menu(governor) => governor.select(states, moment, next_timer),
            Self::Teo(governor) => governor.select(states, moment, next_timer),
            Self::TeoUtil(governor) => governor.select(states, moment, next_timer),
            Self::Ladder(governor) => governor.select(states, moment, next_timer),
            Self::Haltpoll(governor) => governor.select(states, moment, next_timer),
            Self::Fixed(governor) => governor.select(states, moment, next_timer),
        }
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        match self {
            Self::Menu(governor) => governor.reflect(states, outcome),
            Self::Teo(governor) => governor.reflect(states, outcome),
            Self::TeoUtil(governor) => governor.reflect(states, outcome),
            Self::Ladder(governor) => governor.reflect(states, outcome),
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
        for word in ["fixed:0", "fixed:1000000"]
            .into_iter()
            .chain(Name::PLAIN.map(Name::word))
        {
            let name = Name::parse(word).unwrap();
            assert_eq!(name.to_string(), word);
            assert!(Name::WORDS.contains(name.word()));
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
