// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a wait that the alarm bounds, perhaps while a second CPU acts, and records how the wait ended.

use arch::insn;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use fidelity::{Action, Wait};

use crate::alarm::Alarm;
use crate::{clock, workers};

/// A wait shorter than this, in microseconds, counts as no wait.
const AT_ONCE_US: u32 = 50;

/// Interval, in microseconds, at which a CPU that waits for its time to act lets the other CPUs run.
const LOOK_US: u32 = 2;

/// Runs `wait` with an empty event register, and with an alarm after `bound` ticks; the record is in ticks.
/// The register is emptied last, because earlier steps may trap, and the return from EL2 is an event.
pub fn watch_wait(bound: u64, wait: impl FnOnce()) -> Wait {
    let at_once = clock::us_to_ticks(AT_ONCE_US);
    let alarm = Alarm::new();
    alarm.forget();
    // A CPU that has done a task may still be on its way to its own wait. If CPUs take turns, it
    // may get a turn in the middle of this wait, at a time that depends on the emulator's other
    // threads. So this CPU gives it that turn now.
    insn::yield_now();
    let due = alarm.set(bound);
    insn::forget_events();
    let start = clock::now();
    wait();
    let end = clock::now();
    let rang = alarm.rang_at();
    Wait {
        bound,
        at_once,
        start,
        end,
        due,
        rang,
    }
}

/// Whether the first CPU is about to wait.
static WAITS: AtomicBool = AtomicBool::new(false);
/// Whether the first CPU's wait is over.
static OVER: AtomicBool = AtomicBool::new(false);
/// The time at which the second CPU began to act, in ticks; 0 before that.
static FROM: AtomicU64 = AtomicU64::new(0);
/// The time at which the second CPU's action was over.
static UNTIL: AtomicU64 = AtomicU64::new(0);

/// Makes the second CPU run `task`, which calls [`act_during_wait`], during `wait`, which calls [`announce_wait`].
/// Returns the record of the wait, and the action if that happened before the wait was over.
pub fn run_with_second(task: fn(), wait: impl FnOnce() -> Wait) -> (Wait, Option<Action>) {
    WAITS.store(false, Release);
    OVER.store(false, Release);
    FROM.store(0, Release);
    workers::run_on_2nd(task);
    let wait = wait();
    OVER.store(true, Release);
    workers::wait_for_second();
    let action = Action {
        from: FROM.load(Acquire),
        until: UNTIL.load(Acquire),
    };
    let in_time = action.from != 0 && action.from <= wait.end;
    (wait, in_time.then_some(action))
}

/// Announces that this CPU is about to wait: the other CPU counts the time to its action from now on, however long
/// this CPU took to get here. An action before the wait itself is not lost: its event stays in the event register.
pub fn announce_wait() {
    WAITS.store(true, Release);
}

/// Whether the wait is over.
pub fn is_wait_over() -> bool {
    OVER.load(Acquire)
}

/// On the second CPU, runs `action` `after` ticks after the first CPU announced its wait, and
/// records the time. Does nothing if the wait is over before that.
pub fn act_during_wait(after: impl FnOnce() -> u64, action: impl FnOnce()) {
    while !WAITS.load(Acquire) {
        insn::yield_now();
    }
    let end = clock::now() + after();
    while !is_wait_over() {
        if clock::now() >= end {
            FROM.store(clock::now(), Release);
            action();
            UNTIL.store(clock::now(), Release);
            return;
        }
        // The other CPUs get a turn from time to time, not after each check: an emulator whose CPUs
        // take turns runs all of them, and there can be hundreds.
        let next = clock::now() + clock::us_to_ticks(LOOK_US);
        while clock::now() < next {
            // For an emulator, one check is hundreds of times as much work as one instruction.
            insn::nops();
        }
        insn::yield_now();
    }
}
