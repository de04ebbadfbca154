// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle states that a guest has besides WFI.

use core::fmt;

use arrayvec::ArrayVec;

use crate::error::Error;

/// Longest exit latency, us: an order of magnitude above real ones. During the exit, EL2 answers no other CPU.
const LONGEST_EXIT: u32 = 10_000;
/// Longest residency, microseconds: a second.
const LONGEST: u32 = 1_000_000;

/// An idle state that a guest enters by PSCI CPU_SUSPEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestState {
    /// Time to leave the state, microseconds.
    pub exit_us: u32,
    /// Shortest time in the state, including the entry, for which the state pays off, microseconds.
    pub residency_us: u32,
}

/// The states from shallow to deep: `100:200+400:2000`, the exit latency and the residency of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestStates(ArrayVec<GuestState, { Self::MOST }>);

impl GuestStates {
    /// The most states. Linux has room for ten, including WFI; tables of servers have two or three.
    pub const MOST: usize = 4;

    /// The form in which states are written.
    pub const FORM: &'static str = "LATENCY:RESIDENCY in microseconds, from shallow to deep, up to four joined by +: \
                                    100:300+400:2000";

    /// Returns one state besides WFI, for a governor that would otherwise have no choice.
    #[must_use]
    pub fn standby() -> Self {
        Self(ArrayVec::from_iter([GuestState {
            exit_us: 100,
            residency_us: 200,
        }]))
    }

    /// Returns the states; empty if there are none besides WFI.
    #[must_use]
    pub fn as_slice(&self) -> &[GuestState] {
        &self.0
    }

    /// Reads the value of argument `key`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::GuestStates`] if `word` is not a list of states.
    pub fn read<'a>(key: &'a str, word: &'a str) -> Result<Self, Error<'a>> {
        Self::parse(word).ok_or(Error::GuestStates { key, word })
    }

    /// Reads states. `None` if `text` has another form or more than [`Self::MOST`] states, or if a state takes more
    /// than 10 ms to leave or a second to pay off, pays off before it could be left, or is no deeper than the last.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut states = ArrayVec::new();
        for word in text.split('+') {
            let (exit, residency) = word.split_once(':')?;
            let state = GuestState {
                exit_us: read_us(exit, LONGEST_EXIT)?,
                residency_us: read_us(residency, LONGEST)?,
            };
            let is_deeper = |last: &GuestState| {
                state.exit_us > last.exit_us && state.residency_us > last.residency_us
            };
            if state.residency_us < state.exit_us || !states.last().is_none_or(is_deeper) {
                return None;
            }
            states.try_push(state).ok()?;
        }
        Some(Self(states))
    }
}

impl fmt::Display for GuestStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, state) in self.0.iter().enumerate() {
            let plus = if place == 0 { "" } else { "+" };
            write!(f, "{plus}{}:{}", state.exit_us, state.residency_us)?;
        }
        Ok(())
    }
}

fn read_us(text: &str, longest: u32) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = text.parse().ok().filter(|_| is_number)?;
    (1..=longest).contains(&time).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_back_from_their_text() {
        for text in [
            "100:200",
            "1:1",
            "100:300+400:2000",
            "1:2+2:3+3:4+10000:1000000",
        ] {
            assert_eq!(GuestStates::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(GuestStates::standby().to_string(), "100:200");
        assert_eq!(GuestStates::default().to_string(), "");
    }

    #[test]
    fn mistakes_are_no_states() {
        let mistakes = [
            "",
            "100",
            "100:",
            ":200",
            "+100:200",
            "100:200+",
            "0:200",
            "100:50",
            "1:1000001",
            "10001:20000",
            "1e3:2000",
            "+1:2",
            // The second state is not deeper: it has a shorter or equal latency, or an equal residency.
            "400:2000+100:3000",
            "100:200+100:300",
            "100:200+150:200",
            "1:2+2:3+3:4+4:5+5:6",
        ];
        for text in mistakes {
            assert_eq!(GuestStates::parse(text), None, "{text}");
            let error = GuestStates::read("guest-states", text)
                .unwrap_err()
                .to_string();
            assert!(error.contains("100:300+400:2000"), "{error}");
        }
    }
}
