// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the answer to a probe's question, which [`fidelity`] derives from trials.

use core::fmt;

use fidelity::{Finding, Verdict};

use crate::clock;

/// The answer to a probe's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and how long the wait in question took, in ticks.
    Yes(Option<u64>),
    /// No, and how long the wait took.
    No(Option<u64>),
    /// The trial was not run. The text is the reason.
    NotRun(&'static str),
    /// The trial was run without a clear result. The text is the reason.
    NotSure(&'static str),
}

impl Answer {
    /// Returns yes or no, for a trial without times.
    pub const fn without_ticks(yes: bool) -> Self {
        Self::with_ticks(yes, None)
    }

    const fn with_ticks(yes: bool, ticks: Option<u64>) -> Self {
        if yes {
            Self::Yes(ticks)
        } else {
            Self::No(ticks)
        }
    }

    /// Whether the answer is yes.
    pub const fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Returns the word that results use for the answer.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Yes(_) => "true",
            Self::No(_) => "false",
            Self::NotRun(_) => "not-run",
            Self::NotSure(_) => "not-sure",
        }
    }
}

/// Prints the detail of an answer: how long the wait took, or why there is no time.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(Some(ticks)) | Self::No(Some(ticks)) => {
                write!(f, "{} ns", clock::ticks_to_ns(*ticks))
            }
            Self::Yes(None) | Self::No(None) => Ok(()),
            Self::NotRun(why) | Self::NotSure(why) => f.write_str(why),
        }
    }
}

/// Repeats `trial`, which gets its bound in ticks, until there is an answer or enough trials have
/// been made.
pub fn repeat_trial(mut trial: impl FnMut(u64) -> Verdict) -> Answer {
    match fidelity::settle(|bound_us| trial(clock::us_to_ticks(bound_us))) {
        Finding::Yes(ticks) => Answer::Yes(Some(ticks)),
        Finding::No(ticks) => Answer::No(Some(ticks)),
        Finding::NotSure(why) => Answer::NotSure(why),
    }
}
