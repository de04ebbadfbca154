// SPDX-License-Identifier: MIT OR Apache-2.0
//! From trials to an answer.
//!
//! What is left to doubt in a valid trial is that the CPU was away at just the few
//! instructions that make a difference. So [`AGREE`] have to say the same, one
//! after the other; void ones are made again, each few of them with more time,
//! and after [`TRIES`] there is no answer. Of trials in doubt each has another time,
//! and [`DOUBTS`] in a row, with no other trial between them, make an answer.

/// Valid trials, one after the other, that make an answer.
const AGREE: u32 = 3;
/// Trials in doubt, with nothing between them, that make an answer.
const DOUBTS: u32 = 5;
/// Trials that are made at most.
const TRIES: u32 = 40;
/// Trials after which the bound is doubled: where a CPU that is woken gets to
/// run after ms, an alarm of 2 ms rings first.
const DOUBLED: u32 = 5;
/// When the first trial ends at the latest, microseconds.
const BOUND_US: u32 = 2000;
/// How much longer each of the trials up to the next doubling is, microseconds: a
/// host whose CPUs come back after a whole number of ms meets one of them, not
/// all.
const LONGER_US: u32 = 300;

/// What one trial showed; with how long the wait in question took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Yes(u64),
    /// No.
    No(u64),
    /// No, unless the CPU was away until just the time at which the alarm was due.
    Doubt(u64),
    /// Nothing, for this reason.
    Void(&'static str),
}

/// What the trials showed; with how long the shortest of those that agree took, as
/// the one in which least came between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Yes.
    Yes(u64),
    /// No.
    No(u64),
    /// Nothing, for this reason.
    NotSure(&'static str),
}

/// Makes `trial`, which gets its bound in microseconds (2000 to 409,600), until there is
/// an answer or there have been enough.
pub fn settle(mut trial: impl FnMut(u32) -> Verdict) -> Finding {
    let mut books = Books::default();
    for number in 0..TRIES {
        let bound = (BOUND_US + number % DOUBLED * LONGER_US) << (number / DOUBLED);
        if let Some(finding) = books.enter(trial(bound)) {
            return finding;
        }
    }
    Finding::NotSure(books.why.unwrap_or("the trials contradict each other"))
}

/// What the trials so far have shown.
#[derive(Default)]
struct Books {
    /// What the last valid one said.
    last: Option<bool>,
    /// Valid ones that said so, one after the other.
    agreed: u32,
    /// Trials in doubt since the last other one.
    doubts: u32,
    /// The shortest of those that agree.
    shortest: u64,
    /// Why the last other one showed nothing.
    why: Option<&'static str>,
}

impl Books {
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

    /// The same of one in doubt. What valid ones have shown stays.
    fn doubt(&mut self, ticks: u64) -> Option<Finding> {
        self.why = Some("the CPU may have been away until the alarm rang");
        self.doubts += 1;
        (self.doubts == DOUBTS).then_some(Finding::No(ticks))
    }
}
