// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what the idle loops do at each limit, and what they count, on a CPU whose events follow a
//! script.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};

use wait::governor::Tunables;
use wait::idle::{self, Busy, Halt, Haltpoll, Idle, Limited, Poll, PollHalt};
use wait::poll::{self, Counted, Pause};
use wait::request::{Notice, POLLING, RESCHED, Request};
use wait::target::{Measure, Target};

/// A CPU. A pause and a YIELD take one tick; a WFI lasts until there is an interrupt.
struct Scripted {
    request: Request,
    time: Cell<u64>,
    /// Times at which requests come, in reverse order.
    wakes: RefCell<Vec<u64>>,
    masked: Cell<bool>,
    pending: Cell<bool>,
    interrupted: Cell<bool>,
    counts: RefCell<Vec<(Measure, u64)>>,
}

impl Scripted {
    fn new(wakes: &[u64]) -> Self {
        Self {
            request: Request::new(),
            time: Cell::new(0),
            wakes: RefCell::new(wakes.iter().rev().copied().collect()),
            masked: Cell::new(false),
            pending: Cell::new(false),
            interrupted: Cell::new(false),
            counts: RefCell::default(),
        }
    }

    /// Advances the time to `time`, and makes the requests that are due by then.
    fn pass_time(&self, time: u64) {
        self.time.set(time);
        let mut wakes = self.wakes.borrow_mut();
        while wakes.last().is_some_and(|&at| at <= time) {
            wakes.pop();
            if self.request.wake(RESCHED, true) == Notice::Send {
                self.pending.set(true);
            }
        }
        drop(wakes);
        self.take_interrupt();
    }

    fn take_interrupt(&self) {
        if !self.masked.get() && self.pending.take() {
            self.interrupted.set(true);
        }
    }

    /// Returns the sum of the counts of `measure`.
    fn counted(&self, measure: Measure) -> u64 {
        let counts = self.counts.borrow();
        let counts = counts.iter().filter(|&&(what, _)| what == measure);
        counts.map(|&(_, many)| many).sum()
    }

    fn word(&self) -> u32 {
        self.request
            .word()
            .load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Target for Scripted {
    fn request(&self) -> &Request {
        &self.request
    }
    fn mask_irq(&self) {
        self.masked.set(true);
    }
    fn unmask_irq(&self) {
        self.masked.set(false);
        self.take_interrupt();
    }
    fn wfi(&self) {
        assert!(self.masked.get(), "WFI with interrupts unmasked");
        while !self.pending.get() {
            let next = self.wakes.borrow().last().copied();
            self.pass_time(next.expect("a WFI that nothing ends"));
        }
    }
    fn yield_now(&self) {
        self.pass_time(self.time.get() + 1);
    }
    fn now(&self) -> u64 {
        self.time.get()
    }
    fn interrupted(&self) -> bool {
        self.interrupted.get()
    }
    fn clear_interrupted(&self) {
        self.interrupted.set(false);
    }
    fn count(&self, measure: Measure, many: u64) {
        self.counts.borrow_mut().push((measure, many));
    }
}

/// Pauses that take [`Scripted`] one tick each, three between two readings of the clock.
struct Ticking<'c>(&'c Scripted);

impl Pause for Ticking<'_> {
    const PER_CLOCK: u32 = 3;
    const TIMED: bool = true;
    fn look(&self, request: &Request) -> u32 {
        request.pending()
    }
    fn pause(&self, _: u64) {
        self.0.yield_now();
    }
}

/// Pauses that return exactly at their deadline, as WFET does.
struct Sleeping<'c>(&'c Scripted);

impl Pause for Sleeping<'_> {
    const PER_CLOCK: u32 = 1;
    const TIMED: bool = true;
    fn look(&self, request: &Request) -> u32 {
        request.pending()
    }
    fn pause(&self, deadline: u64) {
        assert!(deadline > self.0.now(), "a pause that has no time");
        self.0.pass_time(deadline);
    }
}

/// Returns a poll for RESCHED without a limit, whose pauses have a bound of 5 ticks.
fn poll(cpu: &Scripted, timed: bool) -> Poll<Counted<Ticking<'_>>> {
    Poll {
        pause: Counted::new(Ticking(cpu)),
        wanted: RESCHED,
        bound: 5,
        timed,
    }
}

/// Returns a poll for RESCHED with a limit.
fn limited(cpu: &Scripted, limit: u64) -> Limited<Ticking<'_>> {
    Limited {
        pause: Ticking(cpu),
        wanted: RESCHED,
        limit,
    }
}

/// Returns a poll for RESCHED with a limit, followed by a halt.
fn poll_halt(cpu: &Scripted, limit: u64, timed: bool) -> PollHalt<Ticking<'_>> {
    PollHalt {
        pause: Ticking(cpu),
        wanted: RESCHED,
        limit,
        timed,
    }
}

fn poll_to(at: u64, deadline: u64) -> (u32, u64) {
    let cpu = Scripted::new(&[at]);
    cpu.start_polling();
    let seen = poll::until(&cpu, &Ticking(&cpu), RESCHED, deadline);
    (seen, cpu.now())
}

#[test]
fn a_request_ends_a_poll_or_the_deadline_when_the_clock_is_read_next() {
    assert_eq!(poll_to(10, 100), (RESCHED, 10));
    for deadline in 100..110 {
        assert_eq!(poll_to(1000, deadline), (0, deadline.next_multiple_of(3)));
    }
    // The request comes in the last pause before the clock is read, so only the last look sees it.
    assert_eq!(poll_to(99, 99), (RESCHED, 99));
}

#[test]
fn a_poll_without_a_limit_counts_where_it_is_to() {
    for timed in [false, true] {
        let cpu = Scripted::new(&[1040]);
        cpu.pass_time(40);
        let mut idle = poll(&cpu, timed);
        assert_eq!((idle.wait(&cpu), cpu.now(), cpu.word()), (RESCHED, 1040, 0));
        let ticks = if timed { 1000 } else { 0 };
        assert_eq!(cpu.counted(Measure::PollTicks), ticks);
        assert_eq!(cpu.counted(Measure::Pauses), ticks);
        assert_eq!(cpu.counted(Measure::Halts), 0);
    }
}

#[test]
fn a_pause_of_a_poll_without_a_limit_ends_within_its_bound() {
    let cpu = Scripted::new(&[62]);
    cpu.pass_time(40);
    cpu.start_polling();
    // There are no events here, so a request is seen only when a pause ends: at 47, 54, 61 or 68.
    let seen = poll::forever(&cpu, &Sleeping(&cpu), RESCHED, 7);
    assert_eq!((seen, cpu.now()), (RESCHED, 68));
}

#[test]
fn a_poll_spares_its_waker_the_interrupt() {
    fn spared(idle: impl FnOnce(&Scripted) -> u32) {
        let cpu = Scripted::new(&[10]);
        assert_eq!((idle(&cpu), cpu.now(), cpu.word()), (RESCHED, 10, 0));
        assert!(!cpu.interrupted.get(), "it was interrupted");
    }
    let (wanted, limit) = (RESCHED, 100);
    spared(|cpu| poll(cpu, false).wait(cpu));
    spared(|cpu| limited(cpu, limit).wait(cpu));
    spared(|cpu| poll_halt(cpu, limit, false).wait(cpu));
    spared(|cpu| idle::poll_while(cpu, &Ticking(cpu), wanted, limit, || true));
    spared(|cpu| idle::relax_while(cpu, wanted, || true));
}

#[test]
fn what_a_cpu_does_to_its_word_is_what_the_word_says() {
    type Operation = (fn(&Scripted) -> u32, fn(&Request) -> u32);
    let operations: [Operation; 5] = [
        (Scripted::pending, Request::pending),
        (Scripted::start_polling, Request::start_polling),
        (Scripted::stop_polling, Request::stop_polling),
        (
            |cpu| cpu.finish_polling(RESCHED),
            |word| word.finish_polling(RESCHED),
        ),
        (|cpu| cpu.take(RESCHED), |word| word.take(RESCHED)),
    ];
    for value in 0..8 {
        for (number, (of_cpu, of_word)) in operations.into_iter().enumerate() {
            let (cpu, other) = (Scripted::new(&[]), Scripted::new(&[]));
            for cpu in [&cpu, &other] {
                cpu.request
                    .word()
                    .store(value, std::sync::atomic::Ordering::Relaxed);
            }
            let did = (of_cpu(&cpu), cpu.word());
            assert_eq!(
                did,
                (of_word(&other.request), other.word()),
                "{number} {value}"
            );
        }
    }
}

#[test]
fn a_limited_poll_ends_with_a_request_or_with_none() {
    for (at, taken, now) in [(5, RESCHED, 5), (6, RESCHED, 6), (50, 0, 9)] {
        let cpu = Scripted::new(&[at]);
        let mut idle = limited(&cpu, 7);
        assert_eq!((idle.wait(&cpu), cpu.now(), cpu.word()), (taken, now, 0));
        let timeouts = u64::from(taken == 0);
        assert_eq!(cpu.counted(Measure::PollTimeouts), timeouts);
        assert_eq!(cpu.counted(Measure::Overshoot), timeouts * 2);
        assert_eq!(cpu.counted(Measure::PollTicks), timeouts * 9);
    }
}

#[test]
fn busy_acts_on_what_its_handler_left() {
    let cpu = Scripted::new(&[7]);
    assert_eq!(
        (Busy { wanted: RESCHED }.wait(&cpu), cpu.now()),
        (RESCHED, 7)
    );
    assert!(!cpu.interrupted.get() && !cpu.take_interrupted());
}

#[test]
fn a_halt_lasts_to_the_interrupt() {
    for (at, halts) in [(0, 0), (40, 1)] {
        let cpu = Scripted::new(&[at]);
        cpu.pass_time(0);
        let mut idle = Halt {
            wanted: RESCHED,
            timed: true,
        };
        assert_eq!((idle.wait(&cpu), cpu.now()), (RESCHED, at));
        assert_eq!(cpu.counted(Measure::Halts), halts);
        assert_eq!(cpu.counted(Measure::HaltTicks), at);
    }
}

#[test]
fn a_poll_that_runs_out_is_followed_by_a_halt() {
    let cpu = Scripted::new(&[4, 30]);
    let mut idle = poll_halt(&cpu, 10, true);
    assert_eq!((idle.wait(&cpu), cpu.now()), (RESCHED, 4));
    assert_eq!(cpu.counted(Measure::Halts), 0);
    assert_eq!((idle.wait(&cpu), cpu.now()), (RESCHED, 30));
    // The poll that begins at 4 lasts until 16, the first reading of the clock past 14.
    assert_eq!(cpu.counted(Measure::PollTicks), 4 + 12);
    assert_eq!(cpu.counted(Measure::Overshoot), 2);
    assert_eq!(cpu.counted(Measure::HaltTicks), 14);
}

/// The limit grows from 6 to 24, by a factor of 2 at a time. Each wait begins when the previous one ends:
///
/// | request after | the wait | limit afterwards |
/// |---|---|---|
/// | 20 | halts, as the limit is 0 | 6 |
/// | 20 | polls 6, halts 14 | 12 |
/// | 9 | polls, sees it | 12 |
/// | 30 | polls 12, halts 18 | 24 |
/// | 60 | polls 24, halts 36, which is more than 24 | 12 |
#[test]
fn the_limit_of_haltpoll_follows_its_halts() {
    let tunables = Tunables {
        max: 24,
        grow: 2,
        grow_start: 6,
        shrink: 2,
    };
    let cpu = Scripted::new(&[20, 40, 49, 79, 139]);
    let mut idle = Haltpoll::new(Ticking(&cpu), RESCHED, tunables, true);
    let mut done = (0, 0);
    let mut each = Vec::new();
    for at in [20, 40, 49, 79, 139] {
        assert_eq!((idle.wait(&cpu), cpu.now(), cpu.word()), (RESCHED, at, 0));
        let polled = cpu.counted(Measure::PollTicks);
        let halted = cpu.counted(Measure::HaltTicks);
        each.push((polled - done.0, halted - done.1));
        done = (polled, halted);
    }
    assert_eq!(each, [(0, 20), (6, 14), (9, 0), (12, 18), (24, 36)]);
}

#[test]
fn a_poll_goes_on_while_it_is_to() {
    let left = Cell::new(3);
    let still = || left.replace(left.get() - 1) > 1;
    let cpu = Scripted::new(&[1000]);
    let pause = Ticking(&cpu);
    let taken = idle::poll_while(&cpu, &pause, RESCHED, 9, still);
    assert_eq!((taken, cpu.now(), cpu.word()), (0, 27, 0));
    let taken = idle::poll_while(&cpu, &pause, RESCHED, 9, || true);
    assert_eq!((taken, cpu.now(), cpu.word()), (RESCHED, 1000, 0));
}

#[test]
fn a_cpu_that_relaxes_asks_in_each_look_whether_it_is_to() {
    let asked = Cell::new(0);
    let still = || asked.replace(asked.get() + 1) < 27;
    let cpu = Scripted::new(&[1000]);
    let taken = idle::relax_while(&cpu, RESCHED, still);
    // The poll executes one YIELD for each `true` from `still`, and nothing else takes time.
    assert_eq!((taken, asked.get(), cpu.now(), cpu.word()), (0, 28, 27, 0));
    let taken = idle::relax_while(&cpu, RESCHED, || true);
    assert_eq!((taken, cpu.now(), cpu.word()), (RESCHED, 1000, 0));
    // If there is a request, `on` is not even called.
    cpu.request.wake(RESCHED, true);
    let taken = idle::relax_while(&cpu, RESCHED, || unreachable!());
    assert_eq!((taken, cpu.now(), cpu.word()), (RESCHED, 1000, 0));
}

#[test]
fn a_halt_is_left_out_where_something_happened() {
    let cpu = Scripted::new(&[]);
    cpu.start_polling();
    let happened = || {
        assert!(cpu.masked.get() && cpu.word() & POLLING == 0);
        true
    };
    let did = idle::halt_unless(&cpu, RESCHED, happened, || unreachable!());
    assert_eq!(did, (0, false));
    assert!(!cpu.masked.get());
    assert_eq!(cpu.request.wake(RESCHED, true), Notice::Send);
    let did = idle::halt_unless(&cpu, RESCHED, || false, || unreachable!());
    assert_eq!(did, (RESCHED, false));
}

#[test]
fn pauses_are_counted_until_they_are_taken() {
    let cpu = Scripted::new(&[2]);
    let counted = Counted::new(Ticking(&cpu));
    assert_eq!(poll::until(&cpu, &counted, RESCHED, 100), RESCHED);
    assert_eq!((counted.take_pauses(), counted.take_pauses()), (2, 0));
    assert_eq!(Ticking(&cpu).take_pauses(), 0);
}
