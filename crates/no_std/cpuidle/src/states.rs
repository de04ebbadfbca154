// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables by name: `poll+wfi+standby`, `wfi:2:10+deep`, `arm_poll_idle:100`.
//!
//! A table is a list of states from shallow to deep, each with its own times or the default ones,
//! or it is the two states of the driver `arm_poll_idle`. The text is an option, a boot argument and
//! a word in results. The guest and the replay read it with this module.

mod parse_error;

pub use parse_error::{Broken, Misread};

use core::fmt;

use crate::{State, StateKind, Table};

/// Longest exit latency, target residency and poll limit, in us: a second.
const MAX_US: u32 = 1_000_000;
/// Name of the driver.
const DRIVER: &str = "arm_poll_idle";

/// Declares the states, each once.
macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $kind:ident;)*) => {
        /// A state by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Label { $($(#[$doc])* $name,)* }

        impl Label {
            const ALL: &'static [Self] = &[$(Self::$name),*];
            const WORDS: [&'static str; Self::ALL.len()] = [$($word),*];

            const fn kind(self) -> StateKind {
                match self { $(Self::$name => StateKind::$kind,)* }
            }
        }
    };
}

labels! {
    /// Polling of the request word.
    Poll = "poll", Poll;
    /// WFI.
    Wfi = "wfi", Wfi;
    /// PSCI CPU_SUSPEND.
    Standby = "standby", Standby;
    /// PSCI CPU_SUSPEND with a longer exit latency.
    Deep = "deep", Standby;
}

impl Label {
    const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The default times. The times of `wfi` are of the order of magnitude stated for small cores. A
    /// standby state pays off from three exit latencies on, since the tables of common cores state two
    /// to four.
    const fn default_times(self, standby_us: u32) -> Times {
        let (exit_us, residency_us) = match self {
            Self::Poll => (0, 0),
            Self::Wfi => (2, 10),
            Self::Standby => (standby_us, standby_us * 3),
            Self::Deep => (400, 2000),
        };
        Times {
            exit_us,
            residency_us,
        }
    }
}

/// Times of a state, us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    exit_us: u32,
    residency_us: u32,
}

/// A state in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedState {
    label: Label,
    /// `None` means the default times.
    times: Option<Times>,
}

impl ListedState {
    /// A state with the default times.
    const fn with_default_times(label: Label) -> Option<Self> {
        Some(Self { label, times: None })
    }
}

/// A list that can hold each state once.
type List = [Option<ListedState>; Label::ALL.len()];

/// The states of a CPU, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(What);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A list of states, from shallow to deep.
    Listed(List),
    /// The states of [`Table::arm_poll_idle`] with a limit, us.
    ArmPollIdle(u32),
}

impl States {
    /// `poll+wfi+standby`.
    pub const DEFAULT: Self = Self(What::Listed([
        ListedState::with_default_times(Label::Poll),
        ListedState::with_default_times(Label::Wfi),
        ListedState::with_default_times(Label::Standby),
        None,
    ]));

    /// Default exit latency of `standby`, us.
    pub const STANDBY_US: u32 = 100;

    /// Names of states.
    pub const NAMES: [&'static str; Label::ALL.len()] = Label::WORDS;

    /// Parses the output of [`Display`](fmt::Display).
    ///
    /// # Errors
    ///
    /// Returns [`Misread`], which names the mistake and a remedy. Only [`Self::table`] checks whether the
    /// default times of `standby` fit the other states.
    pub fn parse(text: &str) -> Result<Self, Misread<'_>> {
        if let Some(rest) = text.strip_prefix(DRIVER) {
            let limit = match rest.strip_prefix(':') {
                None if rest.is_empty() => Some(100),
                None => None,
                Some(limit) => read_us(limit),
            };
            let limit = limit.ok_or(Misread::Limit(text))?;
            return Ok(Self(What::ArmPollIdle(limit)));
        }
        let mut list = List::default();
        for word in text.split('+') {
            let entry = read_entry(word)?;
            let same =
                |place: &Option<ListedState>| place.is_none_or(|known| known.label == entry.label);
            match list.iter_mut().find(|place| same(place)) {
                Some(place @ None) => *place = Some(entry),
                _ => return Err(Misread::Twice(entry.label.word())),
            }
        }
        let states = Self(What::Listed(list));
        // The states must be consistent even without a `standby` that has default times.
        match states.without_default_standby().table(0, 1) {
            Err(broken) if !broken.is_empty() => Err(Misread::Broken(broken)),
            _ => Ok(states),
        }
    }

    /// Returns the table of a CPU whose tick comes every `tick_ns` and whose `standby` state takes
    /// `standby_us` to leave by default; 0 removes that state.
    ///
    /// # Errors
    ///
    /// Returns the rule that the table breaks, and the state that breaks it.
    pub fn table(&self, standby_us: u32, tick_ns: u64) -> Result<Table, Broken> {
        let list = match &self.0 {
            What::Listed(list) => list,
            What::ArmPollIdle(limit_us) => {
                let table = Table::arm_poll_idle(u64::from(*limit_us) * 1000, tick_ns);
                return table.map_err(|error| Broken::new(error, &[]));
            }
        };
        let mut states = [State::new("", StateKind::Poll, 0, 0); Label::ALL.len()];
        let mut count = 0;
        for entry in list.iter().flatten() {
            let ListedState { label, times } = *entry;
            if times.is_none() && label == Label::Standby && standby_us == 0 {
                continue;
            }
            let times = times.unwrap_or(label.default_times(standby_us));
            let [exit, residency] =
                [times.exit_us, times.residency_us].map(|us| u64::from(us) * 1000);
            states[count] = State::new(label.word(), label.kind(), exit, residency);
            count += 1;
        }
        let states = &states[..count];
        Table::new(states, tick_ns).map_err(|error| Broken::new(error, states))
    }

    /// Whether one of the states polls.
    #[must_use]
    pub fn polls(&self) -> bool {
        self.has_kind(StateKind::Poll)
    }

    /// Whether WFI is one of the states.
    #[must_use]
    pub fn halts_by_wfi(&self) -> bool {
        self.has_kind(StateKind::Wfi)
    }

    /// Whether the table leaves the exit latency of `standby` to another option.
    #[must_use]
    pub fn leaves_standby_open(&self) -> bool {
        *self != self.without_default_standby()
    }

    /// Returns the longest exit latency of the slow states, in us, if `standby` takes `standby_us` by
    /// default.
    #[must_use]
    pub fn slow_exit_us(&self, standby_us: u32) -> u32 {
        let slow = self
            .entries()
            .filter(|entry| entry.label.kind() == StateKind::Standby);
        let exits = slow.map(|entry| {
            let times = entry.times.unwrap_or(entry.label.default_times(standby_us));
            times.exit_us
        });
        exits.max().unwrap_or(0)
    }

    /// Returns the sort key of the table: its states, then as many of their times as fit in the key.
    #[must_use]
    pub fn sort_key(&self) -> u64 {
        match self.0 {
            What::ArmPollIdle(limit_us) => 1 << 63 | u64::from(limit_us),
            What::Listed(list) => {
                let base = Label::ALL.len() as u64 + 1;
                let names = list.iter().fold(0, |sum, entry| {
                    sum * base + entry.map_or(0, |entry| entry.label as u64 + 1)
                });
                let times = self.entries().fold(0_u64, |sum, entry| {
                    let times = entry.times.map_or(0, |times| {
                        1 + (u64::from(times.exit_us) << 21 | u64::from(times.residency_us))
                    });
                    sum.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(times)
                });
                names << 53 | times & ((1 << 53) - 1)
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = ListedState> {
        let list = match self.0 {
            What::Listed(list) => list,
            What::ArmPollIdle(_) => List::default(),
        };
        list.into_iter().flatten()
    }

    fn has_kind(&self, kind: StateKind) -> bool {
        match self.0 {
            What::Listed(_) => self.entries().any(|entry| entry.label.kind() == kind),
            What::ArmPollIdle(_) => kind != StateKind::Standby,
        }
    }

    fn without_default_standby(&self) -> Self {
        let What::Listed(mut list) = self.0 else {
            return *self;
        };
        for place in &mut list {
            let open = |entry: &ListedState| entry.label == Label::Standby && entry.times.is_none();
            if place.as_ref().is_some_and(open) {
                *place = None;
            }
        }
        Self(What::Listed(list))
    }
}

/// Reads a state with or without times.
fn read_entry(word: &str) -> Result<ListedState, Misread<'_>> {
    let (name, times) = match word.split_once(':') {
        None => (word, None),
        Some((name, times)) => (name, Some(times)),
    };
    let at = Label::WORDS.iter().position(|known| *known == name);
    let label = Label::ALL[at.ok_or(Misread::Unknown(word))?];
    let read = |times: &str| {
        let (exit, residency) = times.split_once(':')?;
        Some(Times {
            exit_us: read_us(exit)?,
            residency_us: read_us(residency)?,
        })
    };
    let times = match times {
        None => None,
        Some(times) => Some(read(times).ok_or(Misread::Times(word))?),
    };
    Ok(ListedState { label, times })
}

/// Reads microseconds, in decimal digits.
fn read_us(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&us| digits && us <= MAX_US)
}

impl fmt::Display for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let What::ArmPollIdle(limit_us) = self.0 {
            return write!(f, "{DRIVER}:{limit_us}");
        }
        for (index, entry) in self.entries().enumerate() {
            let separator = if index == 0 { "" } else { "+" };
            write!(f, "{separator}{}", entry.label.word())?;
            if let Some(times) = entry.times {
                write!(f, ":{}:{}", times.exit_us, times.residency_us)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
