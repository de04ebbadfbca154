// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why a text is not a table, and a valid text in its place.

use core::fmt;

use super::{DRIVER, MAX_US};
use crate::{State, TableError};

/// The reason why a text is not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread<'a> {
    /// There is no such state.
    Unknown(&'a str),
    /// A state appears twice.
    Twice(&'static str),
    /// The times of a state are not two valid numbers.
    Times(&'a str),
    /// The limit of `arm_poll_idle` is not a valid number.
    Limit(&'a str),
    /// The table contradicts itself.
    Broken(Broken),
}

impl fmt::Display for Misread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(
                f,
                "there is no state `{word}`; use poll, wfi, standby and deep with + between them, \
                 or {DRIVER}:US"
            ),
            Self::Twice(name) => write!(f, "`{name}` is there twice; name each state once"),
            Self::Times(word) => write!(
                f,
                "`{word}` is not NAME:LATENCY:RESIDENCY in microseconds, 0 to {MAX_US}; \
                 give both times, or none"
            ),
            Self::Limit(word) => write!(
                f,
                "`{word}` is not {DRIVER}:US with a poll limit of 0 to {MAX_US} microseconds; \
                 use {DRIVER}:100"
            ),
            Self::Broken(broken) => broken.fmt(f),
        }
    }
}

/// The rule for tables that a list of states breaks, and the states that break it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Broken {
    error: TableError,
    /// The state and its predecessor.
    names: [&'static str; 2],
}

impl Broken {
    /// Describes `error` in a table of `states`.
    pub(super) fn new(error: TableError, states: &[State]) -> Self {
        let name = |index: usize| states.get(index).map_or("", |state| state.name);
        let at = match error {
            TableError::PollNotFirst(index) | TableError::NotDeeper(index) => index,
            TableError::Count(_)
            | TableError::NoTick
            | TableError::NoneEnabled
            | TableError::NoSuchState(_) => 0,
        };
        let names = [name(at), name(at.saturating_sub(1))];
        Self { error, names }
    }

    /// Whether the mistake is that there is no state.
    pub(super) fn is_empty(&self) -> bool {
        self.error == TableError::Count(0)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, before] = self.names;
        match self.error {
            TableError::PollNotFirst(_) => {
                write!(
                    f,
                    "`{name}` comes after `{before}`; only the first state can poll"
                )
            }
            TableError::NotDeeper(_) => write!(
                f,
                "`{name}` has a lower exit latency or target residency than `{before}` before it; \
                 order the states from shallow to deep, or give them other times \
                 ({name}:LATENCY:RESIDENCY)"
            ),
            TableError::Count(_) => f.write_str(
                "no state is left, as standby takes 0 us to leave; name another state, or another \
                 --standby-us",
            ),
            TableError::NoTick | TableError::NoneEnabled | TableError::NoSuchState(_) => {
                self.error.fmt(f)
            }
        }
    }
}
