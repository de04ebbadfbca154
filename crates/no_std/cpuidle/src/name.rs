// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of the governors, and a governor that is chosen at run time.
//!
//! The choice is an enum and not a trait object, so that `select` is a jump table and its branches
//! can be compiled into the idle loop.

use core::fmt;

use wait::governor::Tunables;

use crate::{
    Choice, Fixed, Governor, Haltpoll, Ladder, Menu, Moment, Outcome, Release, Table, Teo, TeoUtil,
    Util,
};

/// Declares the governors, each once.
macro_rules! governors {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A governor's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Name { $($(#[$doc])* $name,)* }

        impl Name {
            /// Every governor, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The governor's name: `teo`.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The governor's name as a way of waiting: `governor:teo`.
            #[must_use]
            pub const fn wait(self) -> &'static str {
                match self { $(Self::$name => concat!("governor:", $word),)* }
            }
        }
    };
}

governors! {
    /// Predicts from timers and typical intervals; the current version.
    Menu = "menu",
    /// Predicts from timers and typical intervals, like Linux in early 2025.
    Menu614 = "menu-6.14",
    /// Predicts from timers and typical intervals, like Linux in early 2023.
    Menu62 = "menu-6.2",
    /// Compares wake-ups with timer events; the current version.
    Teo = "teo",
    /// Compares wake-ups with timer events, like Linux in early 2023.
    Teo62 = "teo-6.2",
    /// `teo-6.2` with util-awareness, as posted.
    TeoUtilV6 = "teo-util-v6",
    /// `teo-6.2` with util-awareness, corrected.
    TeoUtil65 = "teo-util-6.5",
    /// Goes one state deeper or shallower at a time.
    Ladder = "ladder",
    /// Polls for as long as that has paid off.
    Haltpoll = "haltpoll",
    /// Polls for a fixed time.
    Fixed = "fixed",
}

impl Name {
    /// Whether the governor polls up to a configured limit.
    #[must_use]
    pub const fn limited(self) -> bool {
        match self {
            Self::Fixed => true,
            Self::Menu
            | Self::Menu614
            | Self::Menu62
            | Self::Teo
            | Self::Teo62
            | Self::TeoUtilV6
            | Self::TeoUtil65
            | Self::Ladder
            | Self::Haltpoll => false,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A governor with its configuration: `teo`, `fixed:50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setup {
    name: Name,
    /// Microseconds; 0 if the governor takes no limit.
    limit_us: u32,
}

impl Setup {
    /// Longest poll limit, us: a second.
    pub const MAX_LIMIT_US: u32 = 1_000_000;

    /// Returns governor `name`. `limit_us`, at most [`Self::MAX_LIMIT_US`], applies to governors that take
    /// a limit.
    #[must_use]
    pub const fn new(name: Name, limit_us: u32) -> Self {
        let limit_us = if name.limited() { limit_us } else { 0 };
        Self { name, limit_us }
    }

    /// Returns every governor, with `limit_us` if it takes a limit.
    pub fn all(limit_us: u32) -> impl Iterator<Item = Self> {
        Name::ALL.iter().map(move |&name| Self::new(name, limit_us))
    }

    /// Returns the governor's name.
    #[must_use]
    pub const fn name(self) -> Name {
        self.name
    }

    /// Parses the output of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, limit) = match text.split_once(':') {
            None => (text, None),
            Some((word, limit)) => (word, Some(limit.parse().ok()?)),
        };
        let mut names = Name::ALL.iter().copied();
        let name = names.find(|name| name.word() == word)?;
        let fits = limit.is_some() == name.limited()
            && limit.is_none_or(|limit| limit <= Self::MAX_LIMIT_US);
        fits.then_some(Self::new(name, limit.unwrap_or(0)))
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.limited() {
            write!(f, "{}:{}", self.name, self.limit_us)
        } else {
            self.name.fmt(f)
        }
    }
}

/// A governor that was chosen by name.
///
/// The governor chooses like Linux's, except that Linux's governors return a disabled state if they
/// find no other, and may return state 0 although it is disabled. Here a disabled state is never entered:
/// the shallowest enabled state replaces it.
#[derive(Clone, Copy, Debug)]
pub enum Selected {
    /// `menu`, `menu-6.14` or `menu-6.2`.
    Menu(Menu),
    /// `teo`.
    Teo(Teo),
    /// `teo-6.2`, `teo-util-v6` or `teo-util-6.5`.
    TeoUtil(TeoUtil),
    /// `ladder`.
    Ladder(Ladder),
    /// `haltpoll`.
    Haltpoll(Haltpoll),
    /// `fixed:<us>`.
    Fixed(Fixed),
}

impl Selected {
    /// Returns the governor of `setup`, which has learnt nothing yet.
    #[must_use]
    pub const fn new(setup: Setup) -> Self {
        match setup.name {
            Name::Menu => Self::Menu(Menu::new(Release::Now)),
            Name::Menu614 => Self::Menu(Menu::new(Release::V6_14)),
            Name::Menu62 => Self::Menu(Menu::new(Release::V6_2)),
            Name::Teo => Self::Teo(Teo::new()),
            Name::Teo62 => Self::TeoUtil(TeoUtil::new(Util::Ignored)),
            Name::TeoUtilV6 => Self::TeoUtil(TeoUtil::new(Util::Posted)),
            Name::TeoUtil65 => Self::TeoUtil(TeoUtil::new(Util::Corrected)),
            Name::Ladder => Self::Ladder(Ladder::new()),
            Name::Haltpoll => Self::Haltpoll(Haltpoll::new(Tunables::GUEST)),
            Name::Fixed => Self::Fixed(Fixed::new(setup.limit_us as u64 * 1000)),
        }
    }
}

impl Selected {
    /// Since Linux 7.0, the kernel calls neither a governor's select nor its reflect if there is only one state.
    const fn has_no_choice(&self, states: &Table) -> bool {
        let asked = match self {
            Self::Menu(governor) => governor.runs_with_one_state(),
            Self::TeoUtil(_) | Self::Fixed(_) => true,
            Self::Teo(_) | Self::Ladder(_) | Self::Haltpoll(_) => false,
        };
        states.count() == 1 && !asked
    }
}

impl Governor for Selected {
    fn select(
        &mut self,
        states: &Table,
        moment: &Moment,
        next_timer: impl FnOnce() -> u64,
    ) -> Choice {
        if self.has_no_choice(states) {
            return Choice::keep_tick(states, 0);
        }
        let choice = match self {
            Self::Menu(governor) => governor.select(states, moment, next_timer),
            Self::Teo(governor) => governor.select(states, moment, next_timer),
            Self::TeoUtil(governor) => governor.select(states, moment, next_timer),
            Self::Ladder(governor) => governor.select(states, moment, next_timer),
            Self::Haltpoll(governor) => governor.select(states, moment, next_timer),
            Self::Fixed(governor) => governor.select(states, moment, next_timer),
        };
        if states.at(choice.state).enabled {
            choice
        } else {
            Choice::with_poll_limit(states, states.shallowest(), choice.stop_tick)
        }
    }

    fn reflect(&mut self, states: &Table, outcome: &Outcome) {
        if self.has_no_choice(states) {
            return;
        }
        match self {
            Self::Menu(governor) => governor.reflect(states, outcome),
            Self::Teo(governor) => governor.reflect(states, outcome),
            Self::TeoUtil(governor) => governor.reflect(states, outcome),
            Self::Ladder(governor) => governor.reflect(states, outcome),
            Self::Haltpoll(governor) => governor.reflect(states, outcome),
            Self::Fixed(governor) => governor.reflect(states, outcome),
        }
    }

    fn refused(&mut self) {
        if let Self::Ladder(governor) = self {
            governor.refused();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setups_read_back() {
        let shown: Vec<String> = Setup::all(7).map(|setup| setup.to_string()).collect();
        assert_eq!(
            shown.join(" "),
            "menu menu-6.14 menu-6.2 teo teo-6.2 teo-util-v6 teo-util-6.5 ladder haltpoll fixed:7"
        );
        for word in shown
            .iter()
            .map(String::as_str)
            .chain(["fixed:0", "fixed:1000000"])
        {
            let setup = Setup::parse(word).unwrap();
            assert_eq!(setup.to_string(), word);
            assert_eq!(setup.name().wait(), format!("governor:{}", setup.name()));
        }
    }

    #[test]
    fn what_is_no_governor_is_not_taken() {
        let words = "|fixed|fixed:|fixed:-1|fixed:1000001|Haltpoll|menu:5|governor:menu";
        for word in words.split('|') {
            assert_eq!(Setup::parse(word), None, "{word}");
        }
    }

    #[test]
    fn a_limit_is_for_those_that_take_one() {
        assert_eq!(Setup::new(Name::Menu, 5), Setup::new(Name::Menu, 0));
        assert_ne!(Setup::new(Name::Fixed, 5), Setup::new(Name::Fixed, 0));
    }
}
