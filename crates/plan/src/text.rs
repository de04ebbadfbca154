// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan as boot arguments, and back.

use core::fmt;

use crate::{Dimension, List, PASSES, Plan, Shard, Word};

/// What starts every argument that is ours.
const PREFIX: &str = "rouse.";

/// Longest limit or gap, microseconds: ten seconds.
const MAX_US: u32 = 10_000_000;
/// Most wake-ups per cell: a bucket of the histogram counts up to 2^32.
const MAX_ITERATIONS: u32 = 1_000_000_000;
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
                known.iter().try_for_each(|known| write!(f, ", {known}"))
            }
            Self::Number {
                key,
                word,
                min,
                max,
            } => {
                let nearest = match word.parse::<u64>() {
                    Ok(value) if value > u64::from(*max) => max,
                    _ => min,
                };
                write!(
                    f,
                    "{key}: `{word}` is not a number from {min} to {max}; the nearest is {nearest}"
                )
            }
            Self::Shard { word, nearest } => write!(
                f,
                "shard: `{word}` is not a part I/N with I from 1 to N, N to {MAX_SHARDS}; \
                 the nearest is {nearest}"
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
    /// word that there is.
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
            "check" | "fault" | "stress" | "seed" => Ok(()),
            "iterations" => {
                self.iterations = number(key, values, PASSES, MAX_ITERATIONS)?;
                Ok(())
            }
            "shard" => {
                self.shard = shard(values)?;
                Ok(())
            }
            "raw" if values.is_empty() => {
                self.raw = true;
                Ok(())
            }
            "raw" => Err(Error::NoValue(key)),
            _ => Err(Error::UnknownKey(key)),
        }
    }
}

fn shard(word: &str) -> Result<Shard, Error<'_>> {
    let (index, of) = word.split_once('/').unwrap_or((word, ""));
    let (index, of): (Option<u32>, Option<u32>) = (index.parse().ok(), of.parse().ok());
    let parts = of.unwrap_or(1).clamp(1, MAX_SHARDS);
    let nearest = Shard {
        index: index.unwrap_or(1).clamp(1, parts),
        of: parts,
    };
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
    fn read<'a>(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        self.named = true;
        if values == "all" {
            self.values = T::ALL.iter().copied().collect();
            return Ok(());
        }
        self.values.clear();
        for word in values.split(',') {
            let known = T::NAMES;
            let value = T::parse(word).ok_or(Error::UnknownWord { key, word, known })?;
            if !self.values.contains(&value) {
                self.values.push(value);
            }
        }
        Ok(())
    }
}

impl Dimension<u32> {
    fn read_numbers<'a>(
        &mut self,
        key: &'a str,
        values: &'a str,
        min: u32,
    ) -> Result<(), Error<'a>> {
        self.named = true;
        self.values.clear();
        for word in values.split(',') {
            let value = number(key, word, min, MAX_US)?;
            if !self.values.contains(&value) {
                let pushed = self.values.try_push(value);
                pushed.map_err(|_| Error::TooMany(key))?;
            }
        }
        Ok(())
    }
}

fn number<'a>(key: &'a str, word: &'a str, min: u32, max: u32) -> Result<u32, Error<'a>> {
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
        write!(f, "{PREFIX}iterations={}", self.iterations)?;
        if self.shard != Shard::WHOLE {
            write!(f, " {PREFIX}shard={}", self.shard)?;
        }
        if self.raw {
            write!(f, " {PREFIX}raw")?;
        }
        Ok(())
    }
}

fn show<T: fmt::Display>(
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
mod tests {
    use crate::*;

    fn machine() -> Machine {
        Machine {
            cpus: 2,
            wfxt: true,
            ecv: true,
            frequency: 1_000_000_000,
            hypervisor: true,
        }
    }

    #[test]
    fn a_plan_reads_back() {
        let text = "console=x rouse.wait=wfi,poll-wfi rouse.poll-limit-us=10,200 rouse.trap=all";
        let plan = Plan::parse(text).unwrap();
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
        assert_eq!(
            Plan::parse(&Plan::default().to_string()),
            Ok(Plan::default())
        );
    }

    #[test]
    fn errors_name_the_remedy() {
        let error = |text| Plan::parse(text).unwrap_err().to_string();
        assert!(error("rouse.wait=wfx").contains("there is no `wfx`; use all, busy, spin"));
        assert!(error("rouse.wiat=wfi").contains("`wiat`"));
        assert!(error("rouse.gap-us=99999999").contains("the nearest is 10000000"));
        assert!(error("rouse.poll-limit-us=0").contains("the nearest is 1"));
        assert!(error("rouse.iterations=").contains("not a number"));
    }

    #[test]
    fn the_shards_are_the_whole() {
        let cells = |text: &str| -> Vec<Cell> {
            let plan = Plan::parse(text).unwrap();
            assert_eq!(Plan::parse(&plan.to_string()), Ok(plan.clone()));
            plan.cells(&machine()).collect()
        };
        let whole = cells("rouse.raw");
        let parts = ["rouse.shard=1/3", "rouse.shard=2/3", "rouse.shard=3/3"].map(cells);
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), whole.len());
        for (number, cell) in whole.iter().enumerate() {
            assert_eq!(parts[number % 3][number / 3], *cell);
        }
    }

    #[test]
    fn no_part_of_the_whole_is_refused_with_the_nearest() {
        for (text, nearest) in [
            ("0/8", "1/8"),
            ("9/8", "8/8"),
            ("2", "1/1"),
            ("x/2", "1/2"),
            ("1/0", "1/1"),
            ("1/99999", "1/10000"),
            ("", "1/1"),
            ("01/8", "1/8"),
        ] {
            let mut plan = Plan::default();
            match plan.set("shard", text) {
                Ok(()) => assert_eq!(plan.shard.to_string(), nearest),
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        error.ends_with(&format!("the nearest is {nearest}")),
                        "{error}"
                    );
                }
            }
        }
        assert!(Plan::default().set("raw", "1").is_err());
    }

    #[test]
    fn the_default_matrix_has_no_obstacle() {
        let plan = Plan::default();
        let cells: Vec<Cell> = plan.cells(&machine()).collect();
        assert!(cells.iter().all(|cell| cell.obstacle(&machine()).is_none()));
        assert!((50..80).contains(&cells.len()), "{}", cells.len());
        let trapped = cells.iter().filter(|cell| {
            cell.workload == Workload::Pingpong && cell.wait == Wait::Wfi && cell.trap == Trap::Wfi
        });
        assert_eq!(trapped.count(), 4);
    }

    #[test]
    fn a_period_that_the_counter_cannot_make_is_named_with_the_nearest() {
        let plan = Plan::parse("rouse.wait=wfe rouse.event-stream-us=1000000").unwrap();
        let slow = Machine {
            ecv: false,
            ..machine()
        };
        let obstacle = plan.cells(&slow).next().unwrap().obstacle(&slow);
        assert_eq!(obstacle, Some(Obstacle::StreamPeriod { nearest_us: 65 }));
    }

    #[test]
    fn a_wfe_without_bound_is_not_run() {
        let plan = Plan::parse("rouse.wait=wfe rouse.event-stream-us=0").unwrap();
        let machine = machine();
        let mut cells = plan.cells(&machine);
        assert!(cells.all(|cell| cell.obstacle(&machine) == Some(Obstacle::Unbounded)));
    }

    #[test]
    fn dimensions_that_do_not_apply_do_not_multiply() {
        let plan = Plan::parse(
            "rouse.workload=pingpong rouse.wait=wfi,poll-wfi rouse.trap=none rouse.deliver=inject \
             rouse.wake=ipi rouse.poll-limit-us=10,20,30",
        )
        .unwrap();
        assert_eq!(plan.cells(&machine()).count(), 4);
    }

    #[test]
    fn what_was_named_is_listed_though_it_cannot_run() {
        let plan = Plan::parse("rouse.workload=pingpong rouse.wait=all rouse.trap=all rouse.wake=all rouse.deliver=all").unwrap();
        // Three waits may halt, two traps catch that, and then EL2 polls or not.
        let host_polls = 3 * 2 * 2 * 2;
        assert_eq!(plan.cells(&machine()).count(), 9 * 4 * 2 * 2 + host_polls);
    }

    #[test]
    fn the_bare_machine_runs_what_needs_no_hypervisor() {
        let bare = Machine {
            hypervisor: false,
            ..machine()
        };
        let plan = Plan::default();
        assert!(plan.cells(&bare).count() > 10);
        assert!(
            plan.cells(&bare)
                .all(|cell| cell.trap == Trap::None && cell.deliver == Deliver::Direct)
        );
    }

    #[test]
    fn shares_add_up() {
        for iterations in [4, 5, 6, 7, 2000] {
            let plan = Plan {
                iterations,
                ..Plan::default()
            };
            assert_eq!(
                (0..PASSES).map(|pass| plan.share(pass)).sum::<u32>(),
                iterations
            );
        }
    }
}
