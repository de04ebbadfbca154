// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait that is watched: it is bounded by the alarm, and its books say what
//! ended it. The same for a second CPU that acts meanwhile.

use arch::insn;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use crate::alarm::Alarm;
use crate::{clock, workers};

/// The books of a wait, ticks.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The bound that it had.
    bound: u64,
    /// When it began.
    pub start: u64,
    /// When it was over.
    pub end: u64,
    /// When the alarm was to ring.
    pub due: u64,
    /// When it rang, if it did.
    rang: Option<u64>,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Something other than the alarm.
    Other,
    /// The alarm.
    Alarm,
}

impl Wait {
    /// Does `wait` with the event register empty before it. It is emptied last:
    /// what comes before may trap, and the return from EL2 is an event.
    pub fn watch(bound: u64, wait: impl FnOnce()) -> Self {
        let alarm = Alarm::new();
        alarm.forget();
        let due = alarm.set(bound);
        insn::sevl();
        insn::wfe();
        let start = clock::now();
        wait();
        let end = clock::now();
        let rang = alarm.rang_at();
        Self {
            bound,
            start,
            end,
            due,
            rang,
        }
    }

    /// How long it took.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it began long before `when`.
    pub fn began_long_before(&self, when: u64) -> bool {
        self.start + self.bound / 2 <= when
    }

    /// Whether `when` is shortly after `due`: a CPU that could have run before
    /// and was away would hardly come back just then.
    pub fn is_shortly_after(&self, when: u64, due: u64) -> bool {
        when >= due && when - due <= self.bound / 4
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
                } else if !self.is_shortly_after(at, self.due) {
                    Err("the alarm rang late")
                } else {
                    Ok(End::Alarm)
                }
            }
            _ => Ok(End::Other),
        }
    }
}

/// The first CPU is about to wait.
static WAITS: AtomicBool = AtomicBool::new(false);
/// Its wait is over.
static OVER: AtomicBool = AtomicBool::new(false);
/// When the second CPU began to act, ticks; 0 is not yet.
static FROM: AtomicU64 = AtomicU64::new(0);
/// When it had acted.
static UNTIL: AtomicU64 = AtomicU64::new(0);

/// What the second CPU did, ticks.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// When it began to.
    pub from: u64,
    /// When it had.
    pub until: u64,
}

/// Has the second CPU do `task`, which calls [`act`], during `wait`, which calls
/// [`say`]. What it did, if it came to that before the wait was over.
pub fn beside(task: fn(), wait: impl FnOnce() -> Wait) -> (Wait, Option<Deed>) {
    WAITS.store(false, Release);
    OVER.store(false, Release);
    FROM.store(0, Release);
    workers::on_second(task);
    let wait = wait();
    OVER.store(true, Release);
    workers::wait_for_second();
    let deed = Deed {
        from: FROM.load(Acquire),
        until: UNTIL.load(Acquire),
    };
    let in_time = deed.from != 0 && deed.from <= wait.end;
    (wait, in_time.then_some(deed))
}

/// Says that this CPU is about to wait: only from now on the other one counts the
/// time to its deed, however long it took this one to get here. What it does
/// before the wait proper is not lost either, but stays in the event register.
pub fn say() {
    WAITS.store(true, Release);
}

/// Whether the wait is over.
pub fn is_over() -> bool {
    OVER.load(Acquire)
}

/// The second CPU's side: does `deed` `after` ticks from when the first one said that
/// it waits, and notes when that was; nothing if the wait is over before.
pub fn act(after: impl FnOnce() -> u64, deed: impl FnOnce()) {
    while !WAITS.load(Acquire) {
        insn::yield_now();
    }
    let end = clock::now() + after();
    while !is_over() {
        if clock::now() >= end {
            FROM.store(clock::now(), Release);
            deed();
            UNTIL.store(clock::now(), Release);
            return;
        }
        insn::yield_now();
    }
}
