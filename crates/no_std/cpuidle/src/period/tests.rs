// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests a period on a CPU that follows a script of stays.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::*;
use crate::FOREVER;
use crate::table::tests::{TICK, table};
use crate::{Name, Setup};

/// The course of a stay.
#[derive(Clone, Copy)]
struct Stay {
    /// Length of the stay, ns.
    ns: u64,
    /// The event that ends it.
    event: Option<Wake>,
    /// Whether the tick comes during the stay.
    tick: bool,
    /// Whether the state is entered.
    entered: bool,
}

const INTERRUPTED: Stay = Stay {
    ns: 1_000,
    event: None,
    tick: false,
    entered: true,
};

/// A CPU with a clock of 500 MHz.
struct Scripted {
    device: RefCell<Device>,
    now: Cell<u64>,
    stays: RefCell<VecDeque<Stay>>,
    timer_ns: u64,
    ticked: Cell<bool>,
    /// Every setting of the tick: the time at which it was set, and the time until the tick, ns.
    ticks: RefCell<Vec<(u64, Option<u64>)>>,
    /// Indices of the states that the CPU was asked to enter.
    states: RefCell<Vec<usize>>,
}

impl Scripted {
    fn new(name: Setup, now: u64, timer_ns: u64, stays: &[Stay]) -> Self {
        Self {
            device: RefCell::new(Device::new(table(), name)),
            now: Cell::new(now),
            stays: RefCell::new(stays.iter().copied().collect()),
            timer_ns,
            ticked: Cell::new(false),
            ticks: RefCell::default(),
            states: RefCell::default(),
        }
    }

    fn next(&self, index: usize) -> Stay {
        let stay = self.stays.borrow_mut().pop_front().unwrap();
        self.states.borrow_mut().push(index);
        self.now.set(self.now.get() + stay.ns / 2);
        self.ticked.set(stay.tick);
        stay
    }

    fn usage(&self, index: usize) -> (u64, u64, u64) {
        let device = self.device.borrow();
        let tally = device.statistics().of(index);
        (tally.usage, tally.time_ns, tally.rejected)
    }
}

impl Driver for Scripted {
    type Event = Wake;

    fn now(&self) -> u64 {
        self.now.get()
    }
    fn ns(&self, ticks: u64) -> u64 {
        ticks * 2
    }
    fn tick_ns(&self) -> u64 {
        TICK
    }
    fn utilisation(&self) -> u32 {
        0
    }
    fn next_timer_ns(&self, now: u64) -> u64 {
        assert_eq!(now, self.now.get());
        self.timer_ns
    }
    fn with_device<R>(&self, work: impl FnOnce(&mut Device) -> R) -> R {
        work(&mut self.device.borrow_mut())
    }
    fn set_tick(&self, now: u64, in_ns: Option<u64>) {
        self.ticks.borrow_mut().push((now * 2, in_ns));
    }
    fn take_tick(&self) -> bool {
        self.ticked.take()
    }
    fn poll(&self, choice: &Choice) -> Option<Wake> {
        self.next(choice.state).event
    }
    fn halt(&self, choice: &Choice, way: Way) -> (Option<Wake>, bool) {
        let table = table();
        let state = table.at(choice.state);
        assert_eq!(
            (way.kind, way.exit_latency_ns),
            (state.kind, state.exit_latency_ns)
        );
        let stay = self.next(choice.state);
        (stay.event, stay.entered)
    }
    fn cause(&self, event: Wake) -> Wake {
        event
    }
}

/// `fixed:10` polls, and halts once after a poll that ran out. For the halt, it stops the tick,
/// which stays stopped during the next poll, although a poll itself does not stop the tick.
#[test]
fn stays_follow_until_there_is_an_event() {
    let event = Some(Wake::Request);
    let stays = [
        Stay {
            ns: 10_000,
            ..INTERRUPTED
        },
        Stay {
            ns: 30_000,
            ..INTERRUPTED
        },
        Stay {
            event,
            ..INTERRUPTED
        },
    ];
    let cpu = Scripted::new(Setup::new(Name::Fixed, 10), 0, FOREVER, &stays);
    let mut period = Period::new();
    let events = [(); 3].map(|()| period.stay(&cpu));
    assert_eq!(events, [None, None, event]);
    assert_eq!(cpu.states.take(), [0, 1, 0]);
    let ticks = cpu.ticks.take();
    assert_eq!(ticks, [(0, Some(TICK)), (10_000, None), (40_000, None)]);
    assert_eq!(cpu.usage(0), (2, 11_000, 0));
    assert_eq!(cpu.usage(1), (1, 30_000, 0));
}

/// The governor learns nothing from a state that was not entered: `fixed` halts again,
/// since no halt followed the poll that ran out.
#[test]
fn a_state_that_was_not_entered_is_counted_apart() {
    let refused = Stay {
        entered: false,
        ..INTERRUPTED
    };
    let stays = [INTERRUPTED, refused, INTERRUPTED, INTERRUPTED];
    let cpu = Scripted::new(Setup::new(Name::Fixed, 10), 0, FOREVER, &stays);
    let mut period = Period::new();
    for _ in stays {
        period.stay(&cpu);
    }
    assert_eq!(cpu.states.take(), [0, 1, 1, 0]);
    assert_eq!(cpu.usage(1), (1, 1_000, 1));
}

/// The tick comes at multiples of 4 ms; the time is 1 ms, then 2 ms. `menu`, which has learnt
/// nothing, sleeps to the timer. `menu` keeps the tick if the timer comes before the tick; if not, it stops
/// the tick for the rest of the period.
#[test]
fn the_tick_is_set_as_the_governor_wants_it() {
    let stay = Stay {
        ns: 1_000_000,
        ..INTERRUPTED
    };
    let soon = Scripted::new(Setup::new(Name::Menu, 0), 500_000, 2_000_000, &[stay]);
    Period::new().stay(&soon);
    assert_eq!(soon.ticks.take(), [(1_000_000, Some(3_000_000))]);
    let mut late = Scripted::new(Setup::new(Name::Menu, 0), 500_000, 50_000_000, &[stay; 3]);
    let mut period = Period::new();
    period.stay(&late);
    late.timer_ns = 1_000_000;
    period.stay(&late);
    assert_eq!(late.ticks.take(), [(1_000_000, None), (2_000_000, None)]);
    Period::new().stay(&late);
    assert_eq!(late.ticks.take(), [(3_000_000, Some(1_000_000))]);
}

/// A stay without an event has a cause, too. A poll that reached its limit does not take the tick; a halt
/// that the tick ended does.
#[test]
fn what_ended_a_stay_is_told() {
    let ticked = Stay {
        tick: true,
        ..INTERRUPTED
    };
    // A latency limit of 0 forbids every halt, so the governor polls.
    let polls = Scripted::new(Setup::new(Name::Ladder, 0), 0, FOREVER, &[ticked]);
    polls.device.borrow_mut().set_latency_limit(0);
    Period::new().stay(&polls);
    assert!(polls.ticked.get(), "a poll takes no tick");
    let halts = Scripted::new(Setup::new(Name::Haltpoll, 0), 0, FOREVER, &[ticked]);
    Period::new().stay(&halts);
    assert_eq!(halts.states.take(), [1]);
    assert!(!halts.ticked.get(), "a halt that the tick ended takes it");
}
