// SPDX-License-Identifier: MIT OR Apache-2.0
//! From trials to an answer.
//!
//! Even a valid trial can be wrong, if the CPU was descheduled at just the few
//! instructions that matter. So [`AGREE`] valid trials in a row have to agree. Void
//! trials are repeated, every [`DOUBLED`] of them with twice the time; after [`TRIES`]
//! trials there is no answer. Trials in doubt each have another length, and [`DOUBTS`] in
//! a row, with no other trial between them, are an answer.

/// Valid trials in a row that make an answer.
const AGREE: u32 = 3;
/// Trials in doubt in a row, with nothing between them, that make an answer.
const DOUBTS: u32 = 5;
/// Most trials.
const TRIES: u32 = 40;
/// Trials after which the bound is doubled: if a woken CPU runs only after milliseconds,
/// an alarm of 2 ms rings first.
const DOUBLED: u32 = 5;
/// When the first trial ends at the latest, microseconds.
const BOUND_US: u32 = 2000;
/// How much longer each trial up to the next doubling is, microseconds: a host that
/// resumes CPUs after a whole number of milliseconds can match one of them, not all.
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

/// Result of the trials, with the length of the shortest of those that agree: the one with the
/// least disturbance.
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
    /// Result of the last valid one.
    last: Option<bool>,
    /// Valid trials in a row that agreed.
    agreed: u32,
    /// Trials in doubt since the last other one.
    doubts: u32,
    /// The shortest of those that agree.
    shortest: u64,
    /// Why the last other one showed nothing.
    why: Option<&'static str>,
}

impl TrialResults {
    /// Enters a trial; the answer, if it makes one.
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

    /// Enters a trial in doubt. The results of valid ones stay.
    fn doubt(&mut self, ticks: u64) -> Option<Finding> {
        self.why = Some("the CPU may have been away until the alarm rang");
        self.doubts += 1;
        (self.doubts == DOUBTS).then_some(Finding::No(ticks))
    }
}
