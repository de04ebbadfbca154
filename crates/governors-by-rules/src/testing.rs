// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables, questions and sleeps of the tests.

use crate::trace::{Ask, Choice, Event, NO_LATENCY_LIMIT, Sleep, State, Table};

pub(crate) const US: i64 = 1000;
pub(crate) const MS: i64 = 1_000_000;

/// A state of latency and residency in us.
pub(crate) fn state(latency_us: i64, residency_us: i64) -> State {
    State {
        exit_latency_ns: latency_us * US,
        target_residency_ns: residency_us * US,
        polling: false,
        disabled: false,
    }
}

pub(crate) fn poll() -> State {
    State {
        polling: true,
        ..state(0, 0)
    }
}

/// Poll; 2/10 us; 50/100 us; 200/5000 us.
pub(crate) fn four() -> Table {
    Table::new(&[poll(), state(2, 10), state(50, 100), state(200, 5000)])
}

/// The same without the poll state: 2/2 us; 50/100 us; 200/5000 us.
pub(crate) fn three() -> Table {
    Table::new(&[state(2, 2), state(50, 100), state(200, 5000)])
}

pub(crate) fn without(mut table: Table, disabled: &[usize]) -> Table {
    for &index in disabled {
        table.set_disabled(index, true);
    }
    table
}

/// A timer, and an event as far away.
pub(crate) fn ask(timer_ns: i64) -> Ask {
    Ask {
        timer_ns,
        event_ns: timer_ns,
        tick_stopped: false,
        io_waiters: 0,
        latency_limit_ns: NO_LATENCY_LIMIT,
        utilisation: 0,
    }
}

pub(crate) fn stopped(timer_ns: i64) -> Ask {
    Ask {
        tick_stopped: true,
        ..ask(timer_ns)
    }
}

pub(crate) fn within(timer_ns: i64, latency_limit_ns: i64) -> Ask {
    Ask {
        latency_limit_ns,
        ..ask(timer_ns)
    }
}

pub(crate) fn sleep(entered: usize, slept_ns: i64) -> Sleep {
    Sleep {
        entered,
        slept_ns,
        span_ns: slept_ns,
        by_tick: false,
        poll_limit_hit: false,
    }
}

pub(crate) fn slept(entered: usize, slept_ns: i64) -> Event {
    Event::Slept(sleep(entered, slept_ns))
}

pub(crate) fn by_tick(entered: usize, slept_ns: i64) -> Event {
    Event::Slept(Sleep {
        by_tick: true,
        ..sleep(entered, slept_ns)
    })
}

pub(crate) fn limit_hit(slept_ns: i64) -> Event {
    Event::Slept(Sleep {
        poll_limit_hit: true,
        ..sleep(0, slept_ns)
    })
}

pub(crate) fn keep(state: usize) -> Choice {
    Choice::new(state, false)
}

pub(crate) fn stop(state: usize) -> Choice {
    Choice::new(state, true)
}
