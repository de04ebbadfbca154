// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frequency of the scheduler's tick.

use core::fmt;

/// Declares the frequencies, each once.
macro_rules! frequencies {
    ($($name:ident = $hz:literal,)*) => {
        /// Frequency of the scheduler's tick: one of the possible values of Linux's `CONFIG_HZ`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Hz(u32);

        impl Hz {
            $(#[doc = concat!($hz, " ticks per second.")] pub const $name: Self = Self($hz);)*

            /// Every frequency, the lowest first.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The numbers of all frequencies, as text.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($hz)),*];
        }
    };
}

frequencies! {
    HZ_100 = 100,
    HZ_250 = 250,
    HZ_300 = 300,
    HZ_1000 = 1000,
}

impl Hz {
    /// Ticks per second.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Period of the tick, ns, rounded as Linux does: 3 333 333 at 300 Hz.
    #[must_use]
    pub const fn tick_ns(self) -> u64 {
        let hz = self.0 as u64;
        (1_000_000_000 + hz / 2) / hz
    }

    /// The frequency that `text` names; `None` if it is not in [`Self::ALL`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|word| *word == text)?;
        Some(Self::ALL[at])
    }
}

impl fmt::Display for Hz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_have_the_ticks_of_linux() {
        let ticks: Vec<u64> = Hz::ALL.iter().map(|hz| hz.tick_ns()).collect();
        assert_eq!(ticks, [10_000_000, 4_000_000, 3_333_333, 1_000_000]);
    }

    #[test]
    fn only_these_are_read() {
        for hz in Hz::ALL {
            assert_eq!(Hz::parse(&hz.to_string()), Some(*hz));
        }
        for text in ["", "0", "0100", "200", "1000 ", "+250"] {
            assert_eq!(Hz::parse(text), None, "{text}");
        }
    }
}
