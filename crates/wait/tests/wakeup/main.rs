// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wake-up protocol, model-checked.
#![cfg(loom)]

mod machine;
mod protocol;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use machine::{Coverage, Cpu, Looks, Wake, World};
use protocol::*;
use wait::poll::{self, Pause};
use wait::request::{CALL, REQUESTS, RESCHED, Request};

/// A way of waiting, after those of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `Poll`: without limit.
    Poll,
    /// `Halt`: WFI without polling.
    Wfi,
    /// `PollHalt`: poll, then WFI.
    PollWfi,
    /// `Haltpoll`: every other wait halts at once, without promising to look.
    Haltpoll,
    /// `Poll` for the first wait, `Halt` for the others: what a CPU does that
    /// parks after a measurement.
    PollThenWfi,
}

/// `Poll::wait`.
fn poll_wait<P: Protocol>(cpu: &Cpu<P>, wanted: u32) -> u32 {
    let looks = Looks { cpu, endless: true };
    cpu.step(Request::start_polling);
    while cpu.until(&looks, wanted) == 0 {}
    cpu.step(|request| P::finish_polling(request, wanted))
}

/// `Halt::wait`, one round.
fn wfi_wait<P: Protocol>(cpu: &Cpu<P>, wanted: u32) -> u32 {
    P::halt(cpu, wanted, Request::pending);
    cpu.step(|request| P::take(request, wanted))
}

/// `halt`.
fn halt<P: Protocol>(cpu: &Cpu<P>, wanted: u32) -> u32 {
    P::halt(cpu, wanted, P::stop_polling);
    cpu.step(|request| P::take(request, wanted))
}

/// `PollHalt::wait`, one round.
fn poll_halt<P: Protocol>(cpu: &Cpu<P>, wanted: u32) -> u32 {
    let looks = Looks {
        cpu,
        endless: false,
    };
    cpu.step(Request::start_polling);
    if cpu.until(&looks, wanted) != 0 {
        return cpu.step(|request| P::finish_polling(request, wanted));
    }
    halt(cpu, wanted)
}

impl<P: Protocol> Cpu<P> {
    /// The real polling loop, with one look before the last one.
    fn until(&self, looks: &Looks<'_, P>, wanted: u32) -> u32 {
        let deadline = looks.now() + 1;
        self.with_request(|request| poll::until(looks, request, wanted, deadline))
    }
}

/// What is modelled.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    way: Way,
    /// Request bits that end a wait.
    wanted: u32,
    /// Pending interrupts are not taken at the very unmasking.
    late: bool,
    /// What each waker does, one thread each.
    wakers: &'static [&'static [Wake]],
    /// Preemptions that are explored; all if `None`.
    bound: Option<usize>,
}

/// Every execution of `scenario`.
fn check<P: Protocol>(scenario: Scenario) -> Arc<Coverage> {
    let coverage = Arc::new(Coverage::default());
    let inner = Arc::clone(&coverage);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = scenario.bound;
    builder.check(move || {
        let bits = scenario.wakers.iter().copied().flatten();
        let bits = bits.map(|wake| wake.bit).collect();
        let world = Arc::new(World::new(bits, Arc::clone(&inner)));
        let mut first = 0;
        for &wakes in scenario.wakers {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || {
                for (index, &wake) in wakes.iter().enumerate() {
                    world.wake::<P>(first + index, wake);
                }
            });
            first += wakes.len();
        }
        let cpu = Cpu::<P>::new(world, scenario.late);
        let mut waits = 0;
        while !cpu.done() {
            let taken = match (scenario.way, waits % 2) {
                (Way::Poll, _) => poll_wait(&cpu, scenario.wanted),
                (Way::Wfi, _) => wfi_wait(&cpu, scenario.wanted),
                (Way::PollWfi, _) | (Way::Haltpoll, 1) => poll_halt(&cpu, scenario.wanted),
                (Way::Haltpoll, _) => halt(&cpu, scenario.wanted),
                (Way::PollThenWfi, _) if waits == 0 => poll_wait(&cpu, scenario.wanted),
                (Way::PollThenWfi, _) => wfi_wait(&cpu, scenario.wanted),
            };
            waits += 1;
            cpu.serve(taken);
        }
    });
    coverage
}
const R: Wake = Wake { bit: RESCHED, elide: true };
const C: Wake = Wake { bit: CALL, elide: true };
const RS: Wake = Wake { bit: RESCHED, elide: false };
const CS: Wake = Wake { bit: CALL, elide: false };
#[test]
fn explore() {
    let bound = std::env::var("BOUND").ok().and_then(|b| b.parse().ok());
    let sets: &[(&str, u32, &'static [&'static [Wake]])] = &[
        ("R", REQUESTS, &[&[R]]), ("C", REQUESTS, &[&[C]]), ("RC", REQUESTS, &[&[R, C]]),
        ("RR", REQUESTS, &[&[R, R]]),
        ("RS CS", RESCHED, &[&[RS, CS]]), ("CS", RESCHED, &[&[CS]]),
        ("R|C", REQUESTS, &[&[R], &[C]]), ("R|R", REQUESTS, &[&[R], &[R]]),
        ("RS|CS", RESCHED, &[&[RS], &[CS]]), ("R|CS", REQUESTS, &[&[R], &[CS]]),
        ("R|RS", REQUESTS, &[&[R], &[RS]]),
        ("C|C", REQUESTS, &[&[C], &[C]]),
    ];
    for &(name, wanted, wakers) in sets {
        for way in [Way::Poll, Way::Wfi, Way::PollWfi, Way::Haltpoll, Way::PollThenWfi] {
            for late in [false, true] {
                let start = std::time::Instant::now();
                let r = catch_unwind(AssertUnwindSafe(|| check::<Real>(Scenario { way, wanted, late, wakers, bound })));
                match r {
                    Ok(c) => println!("{name:6} {way:?} late {late} {:?} {c:?}", start.elapsed()),
                    Err(e) => println!("{name:6} {way:?} late {late} FAILED {:?}", e.downcast_ref::<String>()),
                }
            }
        }
    }
}
#[test]
fn mutants() {
    fn go<P: Protocol>(name: &str) {
    let bound = std::env::var("BOUND").ok().and_then(|b| b.parse().ok());
    let sets: &[(&str, u32, &'static [&'static [Wake]])] = &[
        ("R", REQUESTS, &[&[R]]), ("RR", REQUESTS, &[&[R, R]]),("RS", REQUESTS, &[&[RS]]),("CS", RESCHED, &[&[CS]]),
        ("C", REQUESTS, &[&[C]]), ("RS CS", RESCHED, &[&[RS,CS]]),
        ("R|C", REQUESTS, &[&[R], &[C]]), ("R|R", REQUESTS, &[&[R], &[R]]),
    ];
    for &(set, wanted, wakers) in sets {
        for way in [Way::Poll, Way::Wfi, Way::PollWfi, Way::Haltpoll, Way::PollThenWfi] {
            for late in [false, true] {
                let r = catch_unwind(AssertUnwindSafe(|| check::<P>(Scenario { way, wanted, late, wakers, bound })));
                if let Err(e) = r {
                    println!("{name} {set:6} {way:?} late {late} {:.30?}", e.downcast_ref::<String>().cloned().or(e.downcast_ref::<&str>().map(|s|s.to_string())));
                }
            }
        }
    }
    }
    macro_rules! all { ($($m:ident)*) => { $(go::<$m>(stringify!($m));)* } }
    all!(StopNotAtomic StopKeepsPolling CheckBeforeClear FinishKeepsPolling TakeNotAtomic LookBeforeRequest RelaxedWake RelaxedTake RelaxedFinish NeverMasked MaskedLate NoBarrier);
}
