// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives an answer from trials.
//!
//! Even a valid trial can be wrong, if the CPU was descheduled exactly at the few instructions that
//! matter. So [`AGREE`] valid trials in a row must agree. Void trials are repeated. The bound doubles
//! after every [`DOUBLED`] trials; after [`TRIES`] trials there is no answer. All trials in
//! doubt have different lengths, and [`DOUBTS`] of them in a row, without another trial in between,
//! also make an answer.

/// Number of valid trials in a row that must agree to make an answer.
const AGREE: u32 = 3;
/// Number of trials in doubt in a row, without another trial in between, that make an answer.
const DOUBTS: u32 = 5;
/// The maximum number of trials.
const TRIES: u32 = 40;
/// Number of trials after which the bound is doubled: if a woken CPU runs only after milliseconds,
/// an alarm of 2 ms rings first.
const DOUBLED: u32 = 5;
/// The bound of the first trial in microseconds.
const BOUND_US: u32 = 2000;
/// Number of microseconds by which each trial is longer than the previous one, until the next doubling: a
/// host that resumes CPUs after a whole number of milliseconds can match one trial, but not all.
const LONGER_US: u32 = 300;

/// The result of one trial, with the length of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is yes.
    Yes(u64),
    /// The answer is no.
    No(u64),
    /// No, unless the CPU was descheduled until just the time at which the alarm was due.
    Doubt(u64),
    /// The trial shows nothing. The text is the reason.
    Void(&'static str),
}

/// The answer of the trials, with the length of the shortest agreeing trial, the least disturbed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The answer is yes.
    Yes(u64),
    /// The answer is no.
    No(u64),
    /// There is no answer. The text is the reason.
    NotSure(&'static str),
}

/// Runs `trial` until there is an answer, at most 40 times. Passes each trial its bound in microseconds,
/// from 2000 to 409,600.
pub fn settle(mut trial: impl FnMut(u32) -> Verdict) -> Finding {
    let mut tally = TrialResults::default();
    for number in 0..TRIES {
        let bound = (BOUND_US + number % DOUBLED * LONGER_US) << (number / DOUBLED);
        if let Some(finding) = tally.add_trial(trial(bound)) {
            return finding;
        }
    }
    Finding::NotSure(tally.why.unwrap_or("the trials contradict each other"))
}

/// Results of the trials so far.
#[derive(Default)]
struct TrialResults {
    /// The result of the last valid trial.
    last: Option<bool>,
    /// Number of valid trials in a row that agreed.
    agreed: u32,
    /// Number of successive trials in doubt. Any other trial sets it to 0.
    doubts: u32,
    /// The length of the shortest agreeing trial.
    shortest: u64,
    /// The reason why the last void trial showed nothing.
    why: Option<&'static str>,
}

impl TrialResults {
    /// Adds a trial; returns the answer, if the trial completes one.
    fn add_trial(&mut self, verdict: Verdict) -> Option<Finding> {
        let (yes, ticks) = match verdict {
            Verdict::Yes(ticks) => (true, ticks),
            Verdict::No(ticks) => (false, ticks),
            Verdict::Doubt(ticks) => return self.add_doubt(ticks),
            Verdict::Void(reason) => {
                self.why = Some(reason);
                self.doubts = 0;
                return None;
            }
        };
        self.doubts = 0;
        (self.agreed, self.shortest) = if self.last == Some(yes) {
            (self.agreed + 1, ticks.min(self.shortest))
        } else {
            (1, ticks)
        };
        self.last = Some(yes);
        (self.agreed == AGREE).then_some(if yes {
            Finding::Yes(self.shortest)
        } else {
            Finding::No(self.shortest)
        })
    }

    /// Adds a trial in doubt. Keeps the results of valid trials.
    fn add_doubt(&mut self, ticks: u64) -> Option<Finding> {
        self.why = Some("the CPU may have been away until the alarm rang");
        self.doubts += 1;
        (self.doubts == DOUBTS).then_some(Finding::No(ticks))
    }
}
