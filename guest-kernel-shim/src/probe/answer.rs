// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trial shows, and when that is an answer.
//!
//! A CPU can't see that it was away: a hypervisor below, or an emulator's host,
//! may have run something else for any time between any two instructions, and
//! a CPU that was woken may have got to run long after. So one trial shows
//! little. What it shows is kept apart:
//!
//! - Something that was *short* was short, and something that happened *before*
//!   a deed of another CPU was not its effect. These are certain.
//! - Something that was *long* may have been a CPU that was away. It counts only
//!   where the trial's own books explain it (`watch`), else the trial is void.
//!
//! What is left is that the CPU was away at just the few instructions that make
//! a difference. So [`AGREE`] valid trials in a row have to say the same; void
//! ones are made again, each few of them with more time, and after [`TRIES`]
//! there is no answer.

use core::fmt;

use crate::clock;

/// Valid trials in a row that make an answer.
const AGREE: u32 = 3;
/// Trials that are made at most.
const TRIES: u32 = 40;
/// Trials after which the bound is doubled: where a CPU that is woken gets to
/// run after ms, an alarm of 2 ms rings first.
const DOUBLED: u32 = 5;
/// When the first trials end at the latest, microseconds.
const BOUND_US: u32 = 2000;

/// The answer to a probe's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes; how long the wait in question took, ticks.
    Yes(Option<u64>),
    /// No; the same.
    No(Option<u64>),
    /// It was not tried, for this reason.
    NotRun(&'static str),
    /// It was tried, and nothing was shown, for this reason.
    NotSure(&'static str),
}

impl Answer {
    /// Yes or no, where nothing was timed.
    pub const fn plain(yes: bool) -> Self {
        Self::of(yes, None)
    }

    const fn of(yes: bool, ticks: Option<u64>) -> Self {
        if yes {
            Self::Yes(ticks)
        } else {
            Self::No(ticks)
        }
    }

    /// Whether it was shown.
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// The word that results have for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Yes(_) => "true",
            Self::No(_) => "false",
            Self::NotRun(_) => "not-run",
            Self::NotSure(_) => "not-sure",
        }
    }
}

/// The detail of an answer: how long it took, or why there is none.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(Some(ticks)) | Self::No(Some(ticks)) => {
                write!(f, "{} ns", clock::nanoseconds(*ticks))
            }
            Self::Yes(None) | Self::No(None) => Ok(()),
            Self::NotRun(why) | Self::NotSure(why) => f.write_str(why),
        }
    }
}

/// What one trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes; how long the wait in question took, ticks.
    Yes(u64),
    /// No; the same.
    No(u64),
    /// Nothing, for this reason.
    Void(&'static str),
}

impl Verdict {
    /// Yes or no.
    pub const fn of(yes: bool, ticks: u64) -> Self {
        if yes {
            Self::Yes(ticks)
        } else {
            Self::No(ticks)
        }
    }
}

/// Makes `trial`, which gets its bound in ticks, until there is an answer or
/// there have been enough. Of those that agree the shortest is shown, as the one
/// in which least came between.
pub fn settle(trial: impl Fn(u64) -> Verdict) -> Answer {
    let mut last = None;
    let mut agreed = 0;
    let mut shortest = 0;
    let mut why = "the trials contradict each other";
    for number in 0..TRIES {
        let bound = clock::ticks(BOUND_US << (number / DOUBLED));
        let (yes, ticks) = match trial(bound) {
            Verdict::Yes(ticks) => (true, ticks),
            Verdict::No(ticks) => (false, ticks),
            Verdict::Void(reason) => {
                why = reason;
                continue;
            }
        };
        (agreed, shortest) = if last == Some(yes) {
            (agreed + 1, ticks.min(shortest))
        } else {
            (1, ticks)
        };
        last = Some(yes);
        if agreed == AGREE {
            return Answer::of(yes, Some(shortest));
        }
    }
    Answer::NotSure(why)
}
