// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as boot arguments, and back.

use core::fmt;

use crate::words::family;
use crate::{CpuSet, Dimension, List, PASSES, Plan, Shard, Word, magnitude};

/// What starts every argument that is ours.
const PREFIX: &str = "rouse.";

/// Longest limit or gap, microseconds: ten seconds.
const MAX_US: u32 = 10_000_000;
/// Most wake-ups per cell: a bucket of the histogram counts up to 2^32.
const MAX_ITERATIONS: u32 = 1_000_000_000;
/// Longest time of a cell, milliseconds: an hour.
const MAX_CELL_MS: u32 = 3_600_000;
/// Most parts that the cells can be dealt out to.
const MAX_SHARDS: u32 = 10_000;

/// What is wrong with a plan's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<'a> {
    /// There is no such dimension.
    UnknownKey(&'a str),
    /// The dimension has no such value.
    UnknownWord {
        /// Dimension.
        key: &'a str,
        /// What was given.
        word: &'a str,
        /// What could have been.
        known: &'static [&'static str],
    },
    /// Not a number, or outside of the range.
    Number {
        /// Dimension.
        key: &'a str,
        /// What was given.
        word: &'a str,
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// Not a set of CPUs.
    Cpus {
        /// Dimension.
        key: &'a str,
        /// What was given.
        word: &'a str,
    },
    /// More values than a list holds.
    TooMany(&'a str),
    /// Not a part of a number of parts.
    Shard {
        /// What was given.
        word: &'a str,
        /// The part that comes nearest.
        nearest: Shard,
    },
    /// It has no value.
    NoValue(&'a str),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey(key) => write!(f, "there is no option `{key}`"),
            Self::UnknownWord { key, word, known } => {
                write!(f, "{key}: there is no `{word}`; use all")?;
                let mut last = "";
                for known in *known {
                    // A family's own `all` stands before its members.
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
                    None => f.write_str("use one"),
                }
            }
            Self::Shard { word, nearest } => write!(
                f,
                "shard: `{word}` is not a part I/N with I from 1 to N, N to {MAX_SHARDS}; \
                 the nearest is {nearest}"
            ),
            Self::Cpus { key, word } => write!(
                f,
                "{key}: `{word}` is no set of CPUs; use all, none, numbers from 0 to 63 \
                 like 0-3+6, or a mask like 0x4f"
            ),
            Self::NoValue(key) => write!(f, "{key}: it has no value; leave out `=` and the rest"),
            Self::TooMany(key) => write!(
                f,
                "{key}: more than {} values",
                List::<u32>::new().capacity()
            ),
        }
    }
}

impl Plan {
    /// Reads a command line; arguments that do not start with `rouse.` are
    /// somebody else's.
    ///
    /// # Errors
    /// [`Error`] names the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let mut plan = Self::default();
        for argument in text.split_ascii_whitespace() {
            if let Some(argument) = argument.strip_prefix(PREFIX) {
                let (key, values) = argument.split_once('=').unwrap_or((argument, ""));
                plan.set(key, values)?;
            }
        }
        Ok(plan)
    }

    /// Sets dimension `key` to the comma-separated `values`; `all` is every
    /// word that there is, but for those of a family like `governor:menu`: they are
    /// `governor:all`.
    ///
    /// # Errors
    /// [`Error`] names what is wrong.
    pub fn set<'a>(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        match key {
            "workload" => self.workload.read(key, values),
            "shape" => self.shape.read(key, values),
            "wait" => self.wait.read(key, values),
            "trap" => self.trap.read(key, values),
            "deliver" => self.deliver.read(key, values),
            "wake" => self.wake.read(key, values),
            "poll-limit-us" => self.poll_limit_us.read_numbers(key, values, 1),
            "host-poll-us" => self.host_poll_us.read_numbers(key, values, 0),
            "host-poll" => self.host_poll.read(key, values),
            "hint" => self.hint.read(key, values),
            "stages" => self.stages.read(key, values),
            "event-stream-us" => self.event_stream_us.read_numbers(key, values, 0),
            "gap-us" => self.gap_us.read_numbers(key, values, 0),
            // What is to be checked instead, or to fail, is the images' own matter.
            "check" | "cost" | "fault" | "hostile" | "seed" | "soak" | "stress" | "survey"
            | "uart" => Ok(()),
            // A number that is named is meant; a maximum may not be needed.
            "iterations" | "max-iterations" => {
                self.iterations = number(key, values, PASSES, MAX_ITERATIONS)?;
                self.settle = key == "max-iterations";
                Ok(())
            }
            "cell-ms" => {
                self.cell_ms = Some(number(key, values, 0, MAX_CELL_MS)?);
                Ok(())
            }
            "shard" => {
                self.shard = shard(values)?;
                Ok(())
            }
            "raw" => on(&mut self.raw, key, values),
            "compact" => on(&mut self.compact, key, values),
            "cycles" => on(&mut self.cycles, key, values),
            "event-loses-irq" => on(&mut self.event_loses_irq, key, values),
            _ => self
                .system
                .set(key, values)
                .unwrap_or(Err(Error::UnknownKey(key))),
        }
    }
}

/// Turns a switch on, which has no value.
fn on<'a>(switch: &mut bool, key: &'a str, values: &str) -> Result<(), Error<'a>> {
    if !values.is_empty() {
        return Err(Error::NoValue(key));
    }
    *switch = true;
    Ok(())
}

fn shard(word: &str) -> Result<Shard, Error<'_>> {
    let (index, of) = word.split_once('/').unwrap_or((word, ""));
    // Of what is no number, 1 is as near as any other.
    let within = |word, max: u32| {
        let value = magnitude(word).unwrap_or(1).clamp(1, max.into());
        u32::try_from(value).unwrap_or(max)
    };
    let parts = within(of, MAX_SHARDS);
    let nearest = Shard {
        index: within(index, parts),
        of: parts,
    };
    let (index, of): (Option<u32>, Option<u32>) = (index.parse().ok(), of.parse().ok());
    if (index, of) == (Some(nearest.index), Some(nearest.of)) {
        Ok(nearest)
    } else {
        Err(Error::Shard { word, nearest })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl<T: Word> Dimension<T> {
    /// Reads words.
    pub(crate) fn read<'a>(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        self.named = true;
        self.values.clear();
        for word in values.split(',') {
            let known = T::NAMES;
            let mut meant = T::ALL
                .iter()
                .filter(|value| value.is_meant_by(word))
                .peekable();
            if meant.peek().is_none() {
                return Err(Error::UnknownWord { key, word, known });
            }
            for &value in meant {
                if !self.values.contains(&value) {
                    self.values.push(value);
                }
            }
        }
        Ok(())
    }
}

impl<T: Copy + PartialEq> Dimension<T> {
    /// Reads the values one by one by `read`.
    pub(crate) fn read_each<'a>(
        &mut self,
        key: &'a str,
        values: &'a str,
        read: impl Fn(&'a str, &'a str) -> Result<T, Error<'a>>,
    ) -> Result<(), Error<'a>> {
        self.named = true;
        self.values.clear();
        for word in values.split(',') {
            let value = read(key, word)?;
            if !self.values.contains(&value) {
                let pushed = self.values.try_push(value);
                pushed.map_err(|_| Error::TooMany(key))?;
            }
        }
        Ok(())
    }
}

impl Dimension<CpuSet> {
    /// Reads sets of CPUs.
    pub(crate) fn read_sets<'a>(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        self.read_each(key, values, |key, word| {
            CpuSet::parse(word).ok_or(Error::Cpus { key, word })
        })
    }
}

impl Dimension<u32> {
    fn read_numbers<'a>(
        &mut self,
        key: &'a str,
        values: &'a str,
        min: u32,
    ) -> Result<(), Error<'a>> {
        self.read_each(key, values, |key, word| number(key, word, min, MAX_US))
    }
}

pub(crate) fn number<'a>(
    key: &'a str,
    word: &'a str,
    min: u32,
    max: u32,
) -> Result<u32, Error<'a>> {
    let value = word.parse().ok();
    value
        .filter(|value| (min..=max).contains(value))
        .ok_or(Error::Number {
            key,
            word,
            min,
            max,
        })
}

/// Prints what differs from the default, in the form that [`Plan::parse`] reads.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "workload", &self.workload)?;
        show(f, "shape", &self.shape)?;
        show(f, "wait", &self.wait)?;
        show(f, "trap", &self.trap)?;
        show(f, "deliver", &self.deliver)?;
        show(f, "wake", &self.wake)?;
        show(f, "poll-limit-us", &self.poll_limit_us)?;
        show(f, "host-poll-us", &self.host_poll_us)?;
        show(f, "host-poll", &self.host_poll)?;
        show(f, "hint", &self.hint)?;
        show(f, "stages", &self.stages)?;
        show(f, "event-stream-us", &self.event_stream_us)?;
        show(f, "gap-us", &self.gap_us)?;
        self.system.show(f)?;
        let iterations = if self.settle {
            "max-iterations"
        } else {
            "iterations"
        };
        write!(f, "{PREFIX}{iterations}={}", self.iterations)?;
        if let Some(ms) = self.cell_ms {
            write!(f, " {PREFIX}cell-ms={ms}")?;
        }
        if self.shard != Shard::WHOLE {
            write!(f, " {PREFIX}shard={}", self.shard)?;
        }
        let switches = [
            ("compact", self.compact),
            ("raw", self.raw),
            ("cycles", self.cycles),
            ("event-loses-irq", self.event_loses_irq),
        ];
        let on = switches.into_iter().filter(|(_, on)| *on);
        on.map(|(key, _)| key)
            .try_for_each(|key| write!(f, " {PREFIX}{key}"))
    }
}

pub(crate) fn show<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    dimension: &Dimension<T>,
) -> fmt::Result {
    if !dimension.named {
        return Ok(());
    }
    for (index, value) in dimension.values.iter().enumerate() {
        let separator = if index == 0 { '=' } else { ',' };
        if index == 0 {
            write!(f, "{PREFIX}{key}")?;
        }
        write!(f, "{separator}{value}")?;
    }
    f.write_str(" ")
}

#[cfg(test)]
mod tests;
