// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model-checks the wake-up protocol: loom explores the executions of a CPU that waits and of one or
//! two CPUs that wake it.
//!
//! # Parts that are modelled
//!
//! The request word, [`wait::request`], and the loops, [`wait::idle`], with the polling loop and the
//! governor of `haltpoll`, are the real code that the guest runs. The CPU of the loops is a
//! simulated machine, [`machine`]:
//!
//! - An interrupt that is sent stays pending until it is taken. An interrupt can be taken before
//!   any access by the target to the word and before a WFI, while interrupts are not masked. The
//!   handler of a function call's interrupt takes CALL, and the last call requests RESCHED for
//!   its own CPU, as `call::called_function` does; the handler of RESCHED's interrupt sets the flag that
//!   a busy CPU checks.
//! - The scheduler's tick is an interrupt that comes once and requests nothing.
//! - WFI waits until an interrupt is pending, masked or not. So a lost or wrongly omitted wake-up
//!   shows as a WFI that nothing ends, which loom reports as a deadlock. In a wait without WFI, it
//!   shows as a poll that nothing ends, which exceeds loom's branch limit.
//! - An interrupt that is pending when interrupts are unmasked is taken at once or one step later
//!   (`late`): the architecture only says that it is taken soon.
//! - A waker's store before its wake-up is relaxed, and so is the target's load of the stored value once
//!   the target has taken the request. A missing ordering shows as a payload that is missing, or as a
//!   target that waits for the payload forever.
//! - The interrupt itself orders earlier stores, because a DSB precedes it; taking the interrupt
//!   acquires these stores.
//!
//! - The clock advances by one whenever it is read, and by two in every other WFI that has to
//!   wait. Polls have a limit of one: they look, reach the limit and look one last time.
//!   `haltpoll` has limits of zero and one: a short WFI makes its limit grow, a long one makes
//!   it shrink.
//!
//! The target waits again and again until it has found every payload, so the model includes states
//! that one wait leaves for the next.
//!
//! # Parts that are not modelled
//!
//! - WFE, the monitor and SEV. A poll's pause may return at any time and decides nothing; the
//!   event stream ensures that it returns at all, and the guest's stress test checks that it
//!   does.
//! - Time that passes for all CPUs alike. The target's own steps advance its clock, so that a poll ends
//!   soon; loom explores which steps of the other CPUs come before the end.
//! - EL2, which makes a WFI end late.
//! - Reorderings that loom lacks: it explores no load buffering, and delays no store past a
//!   later read-modify-write of another thread. So a missing DSB is represented by two
//!   mutants: in one, the interrupt orders nothing; in the other, it overtakes the request. Loom
//!   explores all executions of one wake-up, and executions of two wake-ups with at most
//!   [`PREEMPTIONS`] preemptions.
//!
//! Work that is posted for a parked CPU, [`wait::post`], has its own model on the same machine,
//! [`posted_work`].
//!
//! # Mutants
//!
//! A model that can't fail proves nothing. [`protocol`] has variants of the protocol and of the
//! loops with one rule broken in each; for each variant, loom must find an execution that fails, in
//! a scenario that the real protocol passes.
#![cfg(loom)]

mod machine;
mod posted_work;
mod protocol;
mod ways;

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use machine::{Coverage, LoomCpu, TICK, Wake, World};
use protocol::{
    CheckBeforeClear, ClearedLate, ClearedUnseen, FinishKeepsPolling, HaltsUnchecked,
    InterruptOvertakes, LookBeforeRequest, MaskedLate, NeverMasked, NeverUnmasked, NoBarrier,
    Protocol, Real, RelaxedFinish, RelaxedTake, RelaxedWake, StopKeepsPolling, StopNotAtomic,
    TakeNotAtomic, TickCheckedEarly, UnmaskedEarly,
};
use wait::request::{CALL, REQUESTS, RESCHED};
use ways::Way;

/// One case that is modelled.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    way: Way,
    /// Request bits that end a wait.
    wanted: u32,
    /// Whether pending interrupts are taken one step after interrupts are unmasked.
    late: bool,
    /// The wake-ups of each waker; each waker is a thread.
    wakers: &'static [&'static [Wake]],
}

/// Preemptions explored per execution if there are several wake-ups.
const PREEMPTIONS: usize = 3;

/// Checks every execution of `scenario`.
fn explore<P: Protocol>(scenario: Scenario) -> Arc<Coverage> {
    let coverage = Arc::new(Coverage::default());
    let inner = Arc::clone(&coverage);
    let mut builder = loom::model::Builder::new();
    let wakes: usize = scenario.wakers.iter().map(|wakes| wakes.len()).sum();
    builder.preemption_bound = (wakes > 1).then_some(PREEMPTIONS);
    // Overrides the environment: a limit from there would hide the executions that it cut off.
    builder.max_permutations = None;
    builder.max_duration = None;
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
        let cpu = LoomCpu::<P>::new(world, scenario.late);
        let mut idle = scenario.way.idle(scenario.wanted);
        while !cpu.is_done() {
            let taken = idle.wait(&cpu);
            cpu.serve(taken);
        }
    });
    coverage
}

/// The wake-ups of each waker, in order.
type Wakers = &'static [&'static [Wake]];

/// Returns a wake-up that omits the interrupt if the target polls.
const fn elide(bit: u32) -> Wake {
    Wake { bit, elide: true }
}

/// Returns a wake-up that always sends an interrupt.
const fn send(bit: u32) -> Wake {
    Wake { bit, elide: false }
}

/// A tick, which requests nothing.
const TICKS_ONCE: Wake = send(TICK);

/// Checks the real protocol with this `way` of waiting, for all `sets` of wanted bits and wakers.
fn assert_holds(way: Way, sets: &[(u32, Wakers)]) {
    for &(wanted, wakers) in sets {
        for late in [false, true] {
            let scenario = Scenario {
                way,
                wanted,
                late,
                wakers,
            };
            let coverage = explore::<Real>(scenario);
            println!("{scenario:?}: {coverage:?}");
            assert_covers(scenario, &coverage);
        }
    }
}

/// Asserts that the executions of `scenario` contained the events that the scenario is about.
fn assert_covers(scenario: Scenario, coverage: &Coverage) {
    let Scenario {
        way,
        wanted,
        wakers,
        ..
    } = scenario;
    let some = |counter: &AtomicU64| counter.load(Relaxed) != 0;
    let any = |test: fn(&Wake) -> bool| wakers.iter().copied().flatten().any(test);
    let wakes: usize = wakers.iter().map(|wakes| wakes.len()).sum();
    assert_eq!(some(&coverage.sent), any(|wake| wake.bit != TICK));
    let elides = way.polls(wakes) && any(|wake| wake.elide);
    assert_eq!(some(&coverage.elided), elides);
    assert_eq!(some(&coverage.blocked), way.halts(wakes));
    assert_eq!(some(&coverage.timeouts), way.times_out(wakes));
    let called = any(|wake| wake.bit == CALL);
    assert_eq!(some(&coverage.handled), called);
    if wanted & CALL == 0 {
        // The handler has served every call of every execution.
        assert!(coverage.handled.load(Relaxed) >= coverage.executions.load(Relaxed));
    }
}

/// Cases with one waker. Without elision, only the handler serves a call.
const ONE: &[(u32, Wakers)] = &[
    (REQUESTS, &[&[elide(RESCHED)]]),
    (REQUESTS, &[&[elide(CALL)]]),
    (REQUESTS, &[&[send(RESCHED)]]),
    (REQUESTS, &[&[send(CALL)]]),
    (REQUESTS, &[&[elide(RESCHED), elide(CALL)]]),
    (REQUESTS, &[&[elide(RESCHED), elide(RESCHED)]]),
    (RESCHED, &[&[send(RESCHED), send(CALL)]]),
];

/// Cases with the scheduler's tick, alone or with a waker.
const TICKS: &[(u32, Wakers)] = &[
    (REQUESTS, &[&[TICKS_ONCE]]),
    (REQUESTS, &[&[TICKS_ONCE], &[send(RESCHED)]]),
    (REQUESTS, &[&[TICKS_ONCE], &[send(CALL)]]),
];

/// Cases with two wakers: both, one or neither may elide the interrupt; the wakers' requests differ or are equal.
const TWO: &[(u32, Wakers)] = &[
    (REQUESTS, &[&[elide(RESCHED)], &[elide(CALL)]]),
    (REQUESTS, &[&[elide(RESCHED)], &[elide(RESCHED)]]),
    (REQUESTS, &[&[elide(CALL)], &[elide(CALL)]]),
    (REQUESTS, &[&[elide(RESCHED)], &[send(CALL)]]),
    (REQUESTS, &[&[elide(RESCHED)], &[send(RESCHED)]]),
    (RESCHED, &[&[send(RESCHED)], &[send(CALL)]]),
];

/// Declares the tests of the real protocol.
macro_rules! holds {
    ($($name:ident: $way:ident, $sets:ident;)*) => {
        $(#[test]
        fn $name() {
            assert_holds(Way::$way, $sets);
        })*
    };
}

holds! {
    one_waker_poll: Poll, ONE;
    one_waker_wfi: Wfi, ONE;
    one_waker_poll_wfi: PollWfi, ONE;
    one_waker_haltpoll: Haltpoll, ONE;
    one_waker_poll_then_wfi: PollThenWfi, ONE;
    one_waker_busy: Busy, ONE;
    one_waker_limited_then_wfi: LimitedThenWfi, ONE;
    one_waker_forced_then_wfi: ForcedThenWfi, ONE;
    one_waker_relaxed_then_wfi: RelaxedThenWfi, ONE;
    ticks: WfiOrTick, TICKS;
    two_wakers_busy: Busy, TWO;
    two_wakers_poll: Poll, TWO;
    two_wakers_wfi: Wfi, TWO;
    two_wakers_poll_wfi: PollWfi, TWO;
    two_wakers_haltpoll: Haltpoll, TWO;
    two_wakers_poll_then_wfi: PollThenWfi, TWO;
}

/// Asserts that loom finds an execution of `wakers` in which `Mutant` fails with message `how`, and
/// none in which the real protocol fails.
fn assert_caught<Mutant: Protocol>(way: Way, wakers: Wakers, how: &str) {
    let scenario = Scenario {
        way,
        wanted: REQUESTS,
        late: false,
        wakers,
    };
    explore::<Real>(scenario);
    let Err(panic) = catch_unwind(|| explore::<Mutant>(scenario)) else {
        panic!("the model does not see this mutant");
    };
    let message = match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().unwrap_or(&"?").to_string(),
    };
    assert!(message.contains(how), "fails for another reason: {message}");
}

/// Loom's message for a WFI that nothing ends.
const LOST: &str = "deadlock";
/// Loom's message for a poll that nothing ends.
const ENDLESS: &str = "exceeded maximum number of branches";
/// The message if a request was taken, but the stores before it are not visible.
const UNORDERED: &str = "payload not there";

/// Declares the tests of the mutants.
macro_rules! caught {
    ($($name:ident: $mutant:ident, $way:ident, $wakers:expr, $how:ident;)*) => {
        $(#[test]
        fn $name() {
            assert_caught::<$mutant>(Way::$way, const { $wakers }, $how);
        })*
    };
}

caught! {
    mutant_stop_not_atomic: StopNotAtomic, PollWfi, &[&[elide(RESCHED)]], LOST;
    mutant_stop_keeps_polling: StopKeepsPolling, PollWfi, &[&[elide(RESCHED)]], LOST;
    mutant_check_before_clear: CheckBeforeClear, PollWfi, &[&[elide(CALL)]], LOST;
    mutant_finish_keeps_polling:
        FinishKeepsPolling, PollThenWfi, &[&[elide(RESCHED), elide(RESCHED)]], LOST;
    mutant_take_not_atomic_wfi: TakeNotAtomic, Wfi, &[&[elide(RESCHED)], &[elide(CALL)]], LOST;
    mutant_take_not_atomic_poll:
        TakeNotAtomic, Poll, &[&[elide(RESCHED)], &[elide(CALL)]], ENDLESS;
    mutant_look_before_request: LookBeforeRequest, PollWfi, &[&[elide(RESCHED)]], LOST;
    mutant_relaxed_wake_poll: RelaxedWake, Poll, &[&[elide(RESCHED)]], UNORDERED;
    mutant_relaxed_wake_wfi: RelaxedWake, Wfi, &[&[elide(CALL)]], UNORDERED;
    mutant_relaxed_take: RelaxedTake, PollWfi, &[&[elide(RESCHED)]], UNORDERED;
    mutant_relaxed_finish: RelaxedFinish, Poll, &[&[elide(RESCHED)]], UNORDERED;
    mutant_never_masked_wfi: NeverMasked, Wfi, &[&[send(RESCHED)]], LOST;
    mutant_never_masked_poll_wfi: NeverMasked, PollWfi, &[&[send(RESCHED)]], LOST;
    mutant_never_masked_call: NeverMasked, Wfi, &[&[send(CALL)]], LOST;
    mutant_masked_late_wfi: MaskedLate, Wfi, &[&[send(RESCHED)]], LOST;
    mutant_masked_late_poll_wfi: MaskedLate, PollWfi, &[&[send(RESCHED)]], LOST;
    mutant_interrupt_overtakes_wfi: InterruptOvertakes, Wfi, &[&[send(RESCHED)]], LOST;
    mutant_interrupt_overtakes_poll_wfi: InterruptOvertakes, PollWfi, &[&[send(RESCHED)]], LOST;
    mutant_unmasked_early_wfi: UnmaskedEarly, Wfi, &[&[send(RESCHED)]], LOST;
    mutant_unmasked_early_poll_wfi: UnmaskedEarly, PollWfi, &[&[send(RESCHED)]], LOST;
    mutant_never_unmasked: NeverUnmasked, WfiOrTick, &[&[TICKS_ONCE]], ENDLESS;
    mutant_halts_unchecked_wfi: HaltsUnchecked, Wfi, &[&[send(RESCHED)]], LOST;
    mutant_halts_unchecked_poll_wfi: HaltsUnchecked, PollWfi, &[&[elide(RESCHED)]], LOST;
    mutant_halts_unchecked_haltpoll: HaltsUnchecked, Haltpoll, &[&[send(RESCHED)]], LOST;
    mutant_finish_keeps_polling_limited:
        FinishKeepsPolling, LimitedThenWfi, &[&[elide(RESCHED)]], LOST;
    mutant_finish_keeps_polling_forced:
        FinishKeepsPolling, ForcedThenWfi, &[&[elide(RESCHED)]], LOST;
    mutant_cleared_unseen: ClearedUnseen, Busy, &[&[send(RESCHED)]], ENDLESS;
    mutant_cleared_late: ClearedLate, Busy, &[&[send(RESCHED), send(RESCHED)]], ENDLESS;
    mutant_tick_checked_early: TickCheckedEarly, WfiOrTick, &[&[TICKS_ONCE]], LOST;
    mutant_tick_unmasked: NeverMasked, WfiOrTick, &[&[TICKS_ONCE]], LOST;
    mutant_no_barrier: NoBarrier, Wfi, &[&[send(RESCHED)]], LOST;
}
