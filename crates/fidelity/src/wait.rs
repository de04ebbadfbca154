// SPDX-License-Identifier: MIT OR Apache-2.0
//! The books of a wait, and what each kind of trial concludes from them.

use super::Verdict;

/// An end that nothing which is tried explains.
const BY_OTHER: &str = "something else ended the wait";
/// What a trial shows whose wait ended and nothing that is tried explains why.
pub const UNEXPLAINED: Verdict = Verdict::Void(BY_OTHER);
/// A deed that leaves the wait too little time to show that it goes on.
const ACTED_LATE: &str = "the other CPU acted late";
/// An end that is later than it may be, and may be that of a CPU that was away.
const ENDED_LATE: &str = "the wait ended late";

/// A wait that an alarm bounds; all times in one unit, from one clock.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// How long after it was set the alarm was to ring.
    pub bound: u64,
    /// What is too short for a wait.
    pub at_once: u64,
    /// When it began.
    pub start: u64,
    /// When it was over.
    pub end: u64,
    /// When the alarm was to ring.
    pub due: u64,
    /// When it rang, if it did.
    pub rang: Option<u64>,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Something other than the alarm.
    Other,
    /// The alarm.
    Alarm,
}

/// What a second CPU did during a wait.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// When it began to.
    pub from: u64,
    /// When it had.
    pub until: u64,
}

impl Wait {
    /// How long it took.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it was over at once.
    pub fn is_at_once(&self) -> bool {
        self.ticks() < self.at_once
    }

    /// Whether it began long before `when`.
    fn began_long_before(&self, when: u64) -> bool {
        self.start + self.bound / 2 <= when
    }

    /// Whether the alarm ended it long after `when`, at which something else was to,
    /// and very soon after the alarm was due.
    fn outlasted(&self, when: u64) -> bool {
        when < self.due && self.end_is_close(when, self.due)
    }

    /// Whether it was over after `due` by less than a part of the time from `when` to
    /// `due`: the smaller that part, the less likely a CPU that was away from `when` on
    /// comes back in it.
    fn end_is_close(&self, when: u64, due: u64) -> bool {
        self.end >= due && self.end - due <= due.saturating_sub(when) / 16
    }

    /// What ended it. That it was the alarm counts only if the wait began long
    /// before it was due, so that there was something to end, and if it was on
    /// time: where this CPU is away when the alarm is due, and is back later, it may
    /// have been away for the whole time, with the wait long over.
    ///
    /// # Errors
    /// Why it can't be told.
    pub fn ended(&self) -> Result<End, &'static str> {
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

/// A WFE with an empty event register waits, by a wait with nothing to end it.
///
/// Yes if the alarm ended it, no if it was over at once. A longer one that the
/// alarm did not end is a no-op whose CPU was away, or an event from elsewhere.
pub fn wfe(wait: &Wait) -> Verdict {
    match wait.ended() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) => Verdict::Yes(wait.ticks()),
        Ok(End::Other) if wait.is_at_once() => Verdict::No(wait.ticks()),
        Ok(End::Other) => Verdict::Void(BY_OTHER),
    }
}

/// Something leaves an event, by a wait behind it with nothing else to end it.
///
/// Yes if it was over at once, no if the alarm ended it.
pub fn first_event(wait: &Wait) -> Verdict {
    match wfe(wait) {
        Verdict::Yes(ticks) => Verdict::No(ticks),
        Verdict::No(ticks) => Verdict::Yes(ticks),
        other => other,
    }
}

/// What a wait during which the second CPU acts shows of the deed, on a machine
/// whose WFE waits; `before` is what an end before the deed shows.
///
/// Yes if it was over after the deed and the alarm had not rung: nothing else is
/// there that would have ended it. If the alarm ended it, and the deed had been
/// done long before, either the deed ended nothing, or this CPU was away until the
/// alarm rang.
pub fn by_deed(wait: &Wait, deed: Option<Deed>, before: Verdict) -> Verdict {
    match (wait.ended(), deed) {
        (Err(why), _) => Verdict::Void(why),
        (Ok(End::Other), None) => before,
        (Ok(End::Other), Some(_)) => Verdict::Yes(wait.ticks()),
        (Ok(End::Alarm), Some(deed)) if wait.outlasted(deed.until) => Verdict::Doubt(wait.ticks()),
        (Ok(End::Alarm), _) => Verdict::Void(ACTED_LATE),
    }
}

/// By when a WFET is to wait, of its bound: 100 us of the first. It grows with it,
/// so that where CPUs are late by ms there is a wait to which that is little.
pub fn deadline(bound: u64) -> u64 {
    bound / 20
}

/// WFET waits until its deadline, `asked` after its start.
///
/// No if it was over before. Yes if it was over soon after; later it may have been a
/// CPU that was away. If the alarm ended it either there was no deadline, or this CPU
/// was away until the alarm rang.
pub fn wfet(wait: &Wait, asked: u64) -> Verdict {
    let ticks = wait.ticks();
    match wait.ended() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) if wait.outlasted(wait.start + asked) => Verdict::Doubt(ticks),
        Ok(End::Alarm) => Verdict::Void(ENDED_LATE),
        Ok(End::Other) if ticks < asked => Verdict::No(ticks),
        Ok(End::Other) if ticks < 2 * asked => Verdict::Yes(ticks),
        Ok(End::Other) => Verdict::Void(ENDED_LATE),
    }
}

/// A WFET that ran into its deadline leaves an event, by `wait` around two of them,
/// each of `asked`, that took `first` and `second`.
///
/// The first one has to have run into it. Yes if the second is over at once; no
/// if it was not over before its own deadline.
pub fn timeout_is_event(wait: &Wait, asked: u64, first: u64, second: u64) -> Verdict {
    match wait.ended() {
        Err(why) => Verdict::Void(why),
        Ok(End::Alarm) => Verdict::Void(ENDED_LATE),
        Ok(End::Other) if first < asked => Verdict::Void(BY_OTHER),
        Ok(End::Other) if second < wait.at_once => Verdict::Yes(second),
        Ok(End::Other) if second >= asked => Verdict::No(second),
        Ok(End::Other) => Verdict::Void(BY_OTHER),
    }
}

impl Wait {
    /// A masked interrupt, the alarm's, ends a WFE; where it does not, `rescue` is when a
    /// second CPU began to send events. `pending` says that the interrupt was there at
    /// the end.
    ///
    /// Yes if the wait was over with the alarm due and no event sent: nothing else is
    /// there that would have ended it. If it was over soon after the first event, with
    /// the interrupt pending, either that ended nothing, or this CPU was away until the
    /// event. Where it was not pending an emulator's timer is late, and there was none
    /// to end the wait.
    pub fn by_masked(&self, rescue: Option<Deed>, pending: bool) -> Verdict {
        if !self.began_long_before(self.due) {
            return Verdict::Void("the alarm rang before the wait had begun");
        }
        match rescue {
            _ if self.end < self.due => Verdict::Void(BY_OTHER),
            None => Verdict::Yes(self.ticks()),
            Some(_) if !pending => Verdict::Void("the timer was late"),
            Some(deed) if self.end_is_close(self.due, deed.from) => Verdict::Doubt(self.ticks()),
            Some(_) => Verdict::Void(ENDED_LATE),
        }
    }
}
