// SPDX-License-Identifier: MIT OR Apache-2.0
//! From trials to an answer.
//!
//! Even a valid trial can be wrong, if the CPU was descheduled exactly at the few instructions that
//! matter. So [`AGREE`] valid trials in a row have to agree. Void trials are repeated, every
//! [`DOUBLED`] of them with twice the time; after [`TRIES`] trials there is no answer. Trials in
//! doubt all have different lengths, and [`DOUBTS`] of them in a row, with no other trial in
//! between, are an answer.

/// Valid trials in a row that make an answer.
const AGREE: u32 = 3;
/// Trials in doubt in a row, with no other trial in between, that make an answer.
const DOUBTS: u32 = 5;
/// Most trials.
const TRIES: u32 = 40;
/// Trials after which the bound is doubled: if a woken CPU runs only after milliseconds,
/// an alarm of 2 ms rings first.
const DOUBLED: u32 = 5;
/// The latest end of the first trial, in microseconds.
const BOUND_US: u32 = 2000;
/// How much longer each trial is until the next doubling, in microseconds: a host that resumes CPUs
/// after a whole number of milliseconds can match one of them, not all.
const LONGER_US: u32 = 300;

/// Result of one trial, with the length of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Yes(u64),
    /// No.
    No(u64),
    /// No, unless the CPU was descheduled until just the time at which the alarm was due.
    Doubt(u64),
    /// Nothing, for this reason.
    Void(&'static str),
}

/// Result of the trials, with the length of the shortest agreeing trial, which was disturbed least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Yes.
    Yes(u64),
    /// No.
    No(u64),
    /// Nothing, for this reason.
    NotSure(&'static str),
}

/// Runs `trial` until there is an answer, or 40 times. It gets its bound in
/// microseconds, 2000 to 409,600.
pub fn settle(mut trial: impl FnMut(u32) -> Verdict) -> Finding {
    let mut tally = TrialResults::default();
    for number in 0..TRIES {
        let bound = (BOUND_US + number % DOUBLED * LONGER_US) << (number / DOUBLED);
        if let Some(finding) = tally.enter(trial(bound)) {
            return finding;
        }
    }
    Finding::NotSure(tally.why.unwrap_or("the trials contradict each other"))
}

/// Results of the trials so far.
#[derive(Default)]
struct TrialResults {
    /// Result of the last valid trial.
    last: Option<bool>,
    /// Valid trials in a row that agreed.
    agreed: u32,
    /// Trials in doubt since the last other trial.
    doubts: u32,
    /// The shortest agreeing trial.
    shortest: u64,
    /// Why the last void trial showed nothing.
    why: Option<&'static str>,
}

impl TrialResults {
    /// Enters a trial; returns the answer, if the trial completes one.
    fn enter(&mut self, verdict: Verdict) -> Option<Finding> {
        let (yes, ticks) = match verdict {
            Verdict::Yes(ticks) => (true, ticks),
            Verdict::No(ticks) => (false, ticks),
            Verdict::Doubt(ticks) => return self.doubt(ticks),
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

    /// Enters a trial in doubt. The results of valid trials stay.
    fn doubt(&mut self, ticks: u64) -> Option<Finding> {
        self.why = Some("the CPU may have been away until the alarm rang");
        self.doubts += 1;
        (self.doubts == DOUBTS).then_some(Finding::No(ticks))
    }
}
