// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times of a wait, and the conclusion that each kind of trial draws from them.

use super::Verdict;

/// The reason if nothing in the trial explains the end of the wait.
const BY_OTHER: &str = "something else ended the wait";
/// The verdict on a wait whose end the trial does not explain.
pub const UNEXPLAINED: Verdict = Verdict::Void(BY_OTHER);
/// The reason if too little time was left after the action to show that the wait continues.
const ACTED_LATE: &str = "the other CPU acted late";
/// The reason if the end is too late: the CPU may have been descheduled.
const ENDED_LATE: &str = "the wait ended late";

/// The times of a wait that an alarm bounds. All times are in one unit, from one clock.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Time from setting the alarm until it is due.
    pub bound: u64,
    /// The shortest time that counts as a wait.
    pub at_once: u64,
    /// When the wait began.
    pub start: u64,
    /// When the wait was over.
    pub end: u64,
    /// When the alarm was due.
    pub due: u64,
    /// When the alarm rang, if it did.
    pub rang: Option<u64>,
}

/// The cause of the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Something other than the alarm ended the wait.
    Other,
    /// The alarm ended the wait.
    Alarm,
}

/// An action of a second CPU during a wait.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// When the CPU began to act.
    pub from: u64,
    /// When the action was complete.
    pub until: u64,
}

impl Wait {
    /// Returns how long the wait took.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the wait was over at once.
    pub fn is_at_once(&self) -> bool {
        self.ticks() < self.at_once
    }

    /// Whether the wait began long before `when`.
    fn began_long_before(&self, when: u64) -> bool {
        self.start + self.bound / 2 <= when
    }

    /// Whether the alarm ended the wait long after `when`, the time at which another cause should
    /// have ended it, and very soon after the alarm was due.
    fn ended_long_after(&self, when: u64) -> bool {
        when < self.due && self.end_is_close(when, self.due)
    }

    /// Whether the wait ended at `due`, or after it by at most a sixteenth of the time from `when`
    /// to `due`. The smaller that fraction, the less likely a CPU descheduled at `when` is to
    /// resume within it.
    fn end_is_close(&self, when: u64, due: u64) -> bool {
        self.end >= due && self.end - due <= due.saturating_sub(when) / 16
    }

    /// Returns the cause of the wait's end. The alarm counts only if the wait began long before the
    /// alarm was due, so that there was a wait to end, and if the alarm rang on time. If it rang
    /// late, this CPU may have been descheduled the whole time, with the wait long over.
    ///
    /// # Errors
    /// Returns the reason why the cause is unknown.
    pub fn end_cause(&self) -> Result<End, &'static str> {
        match self.rang {
            Some(at) if at <= self.end => {
                if at < self.start || !self.began_long_before(self.due) {
                    Err("the alarm rang before the wait had begun")
                } else if at < self.due || at - self.due > self.bound / 4 {
                    Err("the alarm rang late")
                } else {
                    Ok(End::Alarm)
                }
            }
            _ => Ok(End::Other),
        }
    }
}

/// Judges whether a WFE with an empty event register waits, from a wait that nothing should end.
///
/// Yes if the alarm ended the wait, no if the wait was over at once. If anything but the alarm
/// ended a longer wait, either WFE did not wait and the CPU was descheduled, or another event came.
pub fn wfe(wait: &Wait) -> Verdict {
    match wait.end_cause() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) => Verdict::Yes(wait.ticks()),
        Ok(End::Other) if wait.is_at_once() => Verdict::No(wait.ticks()),
        Ok(End::Other) => Verdict::Void(BY_OTHER),
    }
}

/// Judges whether an operation leaves an event, from a wait after it that nothing else should end.
///
/// Yes if the wait was over at once, no if the alarm ended it.
pub fn first_event(wait: &Wait) -> Verdict {
    match wfe(wait) {
        Verdict::Yes(ticks) => Verdict::No(ticks),
        Verdict::No(ticks) => Verdict::Yes(ticks),
        other => other,
    }
}

/// Judges whether an action of the second CPU ends a wait, on a machine whose WFE waits; `before`
/// is the verdict if the wait ended before the action.
///
/// Yes if the wait ended after the action and before the alarm rang: nothing else could have ended
/// it. If the alarm ended the wait long after the action, then either the action ends no wait, or
/// this CPU was descheduled until the alarm rang.
pub fn by_action(wait: &Wait, action: Option<Action>, before: Verdict) -> Verdict {
    match (wait.end_cause(), action) {
        (Err(why), _) => Verdict::Void(why),
        (Ok(End::Other), None) => before,
        (Ok(End::Other), Some(_)) => Verdict::Yes(wait.ticks()),
        (Ok(End::Alarm), Some(action)) if wait.ended_long_after(action.until) => {
            Verdict::Doubt(wait.ticks())
        }
        (Ok(End::Alarm), _) => Verdict::Void(ACTED_LATE),
    }
}

/// Returns the deadline of a WFET in a trial with `bound`: 100 us in the first trial. The deadline
/// grows with the bound, so that a lateness of milliseconds becomes small in comparison.
pub fn deadline(bound: u64) -> u64 {
    bound / 20
}

/// Judges whether WFET waits until its deadline, `asked` after its start.
///
/// No if the WFET ended before the deadline. Yes if it ended soon after the deadline; if it ended
/// later, the CPU may have been descheduled. If the alarm ended it, either there was no deadline,
/// or this CPU was descheduled until the alarm rang.
pub fn wfet(wait: &Wait, asked: u64) -> Verdict {
    let ticks = wait.ticks();
    match wait.end_cause() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) if wait.ended_long_after(wait.start + asked) => Verdict::Doubt(ticks),
        Ok(End::Alarm) => Verdict::Void(ENDED_LATE),
        Ok(End::Other) if ticks < asked => Verdict::No(ticks),
        Ok(End::Other) if ticks < 2 * asked => Verdict::Yes(ticks),
        Ok(End::Other) => Verdict::Void(ENDED_LATE),
    }
}

/// Judges whether a WFET that reached its deadline leaves an event. `wait` spans two WFETs, each
/// with deadline `asked`; the first took `first`, and the second took `second`.
///
/// The first WFET must have reached its deadline. Yes if the second WFET was over at once; no if it
/// lasted until its own deadline.
pub fn timeout_is_event(wait: &Wait, asked: u64, first: u64, second: u64) -> Verdict {
    match wait.end_cause() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) => Verdict::Void(ENDED_LATE),
        Ok(End::Other) if first < asked => Verdict::Void(BY_OTHER),
        Ok(End::Other) if second < wait.at_once => Verdict::Yes(second),
        Ok(End::Other) if second >= asked => Verdict::No(second),
        Ok(End::Other) => Verdict::Void(BY_OTHER),
    }
}

impl Wait {
    /// Judges whether a masked interrupt, the alarm's, ends a WFE. If it does not, `rescue` is the
    /// action in which a second CPU began to send events. `pending` says whether the interrupt was
    /// pending at the end.
    ///
    /// Yes if the wait ended after the alarm was due and no event was sent: nothing else could have
    /// ended it. If the wait ended soon after the first event, with the interrupt pending, then
    /// either the interrupt ends no wait, or this CPU was descheduled until the event. If the
    /// interrupt was not pending, an emulator's timer was late, and no interrupt was there to end
    /// the wait.
    pub fn by_masked(&self, rescue: Option<Action>, pending: bool) -> Verdict {
        if !self.began_long_before(self.due) {
            return Verdict::Void("the alarm rang before the wait had begun");
        }
        match rescue {
            _ if self.end < self.due => Verdict::Void(BY_OTHER),
            None => Verdict::Yes(self.ticks()),
            Some(_) if !pending => Verdict::Void("the timer was late"),
            Some(action) if self.end_is_close(self.due, action.from) => {
                Verdict::Doubt(self.ticks())
            }
            Some(_) => Verdict::Void(ENDED_LATE),
        }
    }
}
