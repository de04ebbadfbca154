// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wake-up protocol, model-checked: loom runs every interleaving of a
//! target that goes idle and a waker.
//!
//! Interrupts are modelled by one flag under a lock with a condition: an
//! interrupt that is sent stays pending until it is taken, and WFI is the wait
//! for it. So a lost wake-up is a WFI that nothing ends, which loom reports as
//! a deadlock. What is stored before a wake-up is a relaxed store, so a missing
//! ordering shows as a payload that is not there. Not modelled: WFE and the
//! monitor, which may return at any time and decide nothing.
//!
//! The target's steps are behind [`Target`], and each of its mutants leaves out
//! one of the rules of `request.rs`. A mutant that passes would mean that the
//! model can't see that rule broken, so each has to fail.
#![cfg(loom)]

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use std::process::Command;
use wait::request::{CALL, Notice, POLLING, REQUESTS, RESCHED, Request};

/// The interrupt line of the target.
struct Line {
    pending: Mutex<bool>,
    sent: Condvar,
}

impl Line {
    fn send(&self) {
        *self.pending.lock().unwrap() = true;
        self.sent.notify_one();
    }

    /// WFI, then taking the interrupt that ended it.
    fn halt(&self) {
        let mut pending = self.pending.lock().unwrap();
        while !*pending {
            pending = self.sent.wait(pending).unwrap();
        }
        *pending = false;
    }
}

/// What target and waker share.
struct World {
    request: Request,
    line: Line,
    payload: AtomicU32,
}

/// How a target gives up polling and how a waker decides, right or wrong.
trait Protocol {
    /// Withdraws the promise to look; the requests that came before.
    fn stop_polling(request: &Request) -> u32 {
        request.stop_polling()
    }
    /// Sets a request and says what is to be done.
    fn wake(request: &Request, bit: u32) -> Notice {
        request.wake(bit, true)
    }
    /// Takes the requests.
    fn take(request: &Request) -> u32 {
        request.take(REQUESTS)
    }
}

/// As it is.
struct Right;
impl Protocol for Right {}

/// POLLING is cleared by a load and a store, so a request in between is lost.
struct ClearNotAtomic;
impl Protocol for ClearNotAtomic {
    fn stop_polling(request: &Request) -> u32 {
        let old = request.word().load(Relaxed);
        request.word().store(old & !POLLING, Relaxed);
        old & REQUESTS
    }
}

/// The requests are looked at before POLLING is cleared.
struct LookBeforeClear;
impl Protocol for LookBeforeClear {
    fn stop_polling(request: &Request) -> u32 {
        let seen = request.pending();
        request.stop_polling();
        seen
    }
}

/// POLLING is not cleared at all before the halt.
struct NoClear;
impl Protocol for NoClear {
    fn stop_polling(request: &Request) -> u32 {
        request.pending()
    }
}

/// The waker looks at POLLING and sets its request in two steps.
struct LookBeforeRequest;
impl Protocol for LookBeforeRequest {
    fn wake(request: &Request, bit: u32) -> Notice {
        let polling = request.word().load(Relaxed) & POLLING != 0;
        request.word().fetch_or(bit, AcqRel);
        if polling {
            Notice::Elided
        } else {
            Notice::Send
        }
    }
}

/// Requests are taken without acquiring what was stored before them.
struct RelaxedTake;
impl Protocol for RelaxedTake {
    fn stop_polling(request: &Request) -> u32 {
        request.word().fetch_and(!POLLING, Relaxed) & REQUESTS
    }
    fn take(request: &Request) -> u32 {
        request.word().fetch_and(!REQUESTS, Relaxed) & REQUESTS
    }
}

/// The target: polls once without success, halts unless a request came, and
/// does so until it has served `expected`.
fn target<P: Protocol>(world: &World, expected: u32) {
    let mut served = 0;
    while served != expected {
        world.request.start_polling();
        if P::stop_polling(&world.request) == 0 {
            world.line.halt();
        }
        let taken = P::take(&world.request);
        if taken != 0 {
            assert_eq!(
                world.payload.load(Relaxed) & taken,
                taken,
                "payload not there"
            );
        }
        served |= taken;
    }
}

/// The target of the wait that never polls.
fn plain_target<P: Protocol>(world: &World, expected: u32) {
    let mut served = 0;
    while served != expected {
        if world.request.pending() == 0 {
            world.line.halt();
        }
        served |= P::take(&world.request);
    }
}

/// One waker per request bit of `bits` against a target.
fn model<P: Protocol + 'static>(bits: &'static [u32], wait: fn(&World, u32)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let world = Arc::new(World {
            request: Request::new(),
            line: Line {
                pending: Mutex::new(false),
                sent: Condvar::new(),
            },
            payload: AtomicU32::new(0),
        });
        let wakers: Vec<_> = bits
            .iter()
            .map(|&bit| {
                let world = Arc::clone(&world);
                loom::thread::spawn(move || {
                    world.payload.fetch_or(bit, Relaxed);
                    if P::wake(&world.request, bit) == Notice::Send {
                        world.line.send();
                    }
                })
            })
            .collect();
        wait(&world, bits.iter().fold(0, |all, bit| all | bit));
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn no_wake_up_is_lost_between_poll_and_halt() {
    model::<Right>(&[RESCHED], target::<Right>);
}

#[test]
fn two_wakers_with_different_requests() {
    model::<Right>(&[RESCHED, CALL], target::<Right>);
}

#[test]
fn a_target_that_never_polls() {
    model::<Right>(&[RESCHED, CALL], plain_target::<Right>);
}

/// Declares a test per mutant that fails when it is run, and the list of them.
macro_rules! mutants {
    ($($name:ident = $mutant:ident;)*) => {
        $(
            #[test]
            #[ignore = "fails, as it should: run by every_mutant_is_caught"]
            fn $name() {
                model::<$mutant>(&[RESCHED], target::<$mutant>);
            }
        )*
        const MUTANTS: &[&str] = &[$(stringify!($name)),*];
    };
}

mutants! {
    mutant_clear_not_atomic = ClearNotAtomic;
    mutant_look_before_clear = LookBeforeClear;
    mutant_no_clear = NoClear;
    mutant_look_before_request = LookBeforeRequest;
    mutant_relaxed_take = RelaxedTake;
}

/// Each in a process of its own: what loom leaves behind when it finds a
/// deadlock can't be unwound.
#[test]
fn every_mutant_is_caught() {
    let me = std::env::current_exe().unwrap();
    for mutant in MUTANTS {
        let run = Command::new(&me)
            .args(["--exact", mutant, "--ignored"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(text.contains("running 1 test"), "{mutant} was not run");
        assert!(
            !run.status.success(),
            "{mutant} passed: the model does not see it"
        );
    }
}
