// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes wake-ups: tokens, half as many as there are CPUs, wander from CPU to CPU.
//!
//! A CPU that takes a token passes it on to another CPU, as a task or as a function call, eliding the interrupt or not.
//! A CPU without a token waits. Tokens are neither made nor lost. If a wake-up does not arrive, a CPU waits although
//! its inbox is not empty, and sooner or later the other tokens arrive there too. Then no CPU makes progress, which
//! EL2's watchdog notices.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use abi::WatchPoint;
use arch::insn;
use platform::MAX_CPUS;
use wait::request::{CALL, RESCHED};

use super::state::is_requested;
use super::violation::{Kind, LOGS, stop_machine};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::wake::Waker;
use guest_kernel_shim::{clock, interrupts};
use plan::SoakFault;
use sched::random::Random;

/// The tokens that are on their way to a CPU.
#[repr(align(64))]
struct Inbox {
    /// Number of tokens that were sent as tasks.
    tasks: AtomicU32,
    /// Number of tokens that were sent as function calls.
    calls: AtomicU32,
    /// The time at which the latest token was sent, in ticks.
    sent_at: AtomicU64,
}

static INBOXES: [Inbox; MAX_CPUS] = [const {
    Inbox {
        tasks: AtomicU32::new(0),
        calls: AtomicU32::new(0),
        sent_at: AtomicU64::new(0),
    }
}; MAX_CPUS];
static POINTS: [WatchPoint; MAX_CPUS] = [const {
    WatchPoint {
        progress: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        request: AtomicU64::new(0),
        log: AtomicU64::new(0),
    }
}; MAX_CPUS];
/// Number of wake-ups left to send in the epoch.
static LEFT: AtomicI64 = AtomicI64::new(0);
static SENT: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
/// The first wake-up that is lost on purpose: it is late enough that every CPU waits.
const LOSS: u64 = 500;

/// Returns the number of tokens.
fn token_count() -> u32 {
    (percpu::all().len() / 2) as u32
}

/// Puts the tokens into the first inboxes, and returns the address of the watch points.
pub fn deal_tokens() -> u64 {
    for (number, cpu) in percpu::all().iter().enumerate() {
        let point = &POINTS[number];
        let word = cpu.request.word().as_ptr() as u64;
        point.request.store(word, Relaxed);
        point.log.store((&raw const LOGS[number]) as u64, Relaxed);
        if (number as u32) < token_count() {
            keep_token(cpu);
        }
    }
    POINTS.as_ptr() as u64
}

/// Starts the next epoch, of `count` wake-ups.
pub fn start_epoch(count: u64) {
    LEFT.store(count as i64, Release);
    STOP.store(false, Release);
}

/// Whether the epoch is over.
pub fn is_epoch_over() -> bool {
    STOP.load(Acquire)
}

/// Returns the number of wake-ups sent so far.
pub fn sent_count() -> u64 {
    SENT.load(Acquire)
}

/// Takes a token that has arrived for this CPU; returns whether there was one.
pub fn take_token(me: &PerCpu) -> bool {
    let inbox = &INBOXES[me.index];
    let one_less = |count: u32| count.checked_sub(1);
    let taken = inbox.tasks.fetch_update(AcqRel, Acquire, one_less).is_ok()
        || inbox.calls.fetch_update(AcqRel, Acquire, one_less).is_ok();
    if taken {
        let point = &POINTS[me.index];
        point.progress.fetch_add(1, AcqRel);
        point.waiting.fetch_sub(1, AcqRel);
        check_time(inbox.sent_at.load(Acquire));
    }
    taken
}

/// Checks the time: once a message has arrived, its receiver must not read a count lower than the
/// count that its sender read before sending it (DDI 0487K.a, D11.1.2).
fn check_time(sent_at: u64) {
    // The count must not be read before the message was read.
    insn::dsb_ish();
    let now = clock::now();
    if now < sent_at {
        stop_machine(
            Kind::Monotony,
            format_args!("the count is {now} at a CPU that got a message of {sent_at}"),
        );
    }
}

/// Keeps a token for the next epoch.
fn keep_token(me: &PerCpu) {
    POINTS[me.index].waiting.fetch_add(1, AcqRel);
    INBOXES[me.index].tasks.fetch_add(1, AcqRel);
}

/// Passes a token on to another CPU; returns whether the epoch continues.
pub fn pass_token(me: &PerCpu, random: &mut Random) -> bool {
    let cpus = percpu::all();
    let other = 1 + random.below(cpus.len() as u64 - 1) as usize;
    let target = cpus[(me.index + other) % cpus.len()];
    let as_task = random.one_in(2);
    let elide = random.one_in(2);
    if LEFT.fetch_sub(1, AcqRel) <= 0 {
        end_epoch(me);
        keep_token(me);
        return false;
    }
    let inbox = &INBOXES[target.index];
    POINTS[target.index].waiting.fetch_add(1, AcqRel);
    inbox.sent_at.fetch_max(clock::now(), AcqRel);
    let (bit, intid) = if as_task {
        inbox.tasks.fetch_add(1, AcqRel);
        (RESCHED, interrupts::RESCHED)
    } else {
        inbox.calls.fetch_add(1, AcqRel);
        (CALL, interrupts::CALL)
    };
    let waker = Waker::new(target, bit, intid, elide, true);
    if SENT.fetch_add(1, AcqRel) >= LOSS && is_requested(SoakFault::LostWakeUp) {
        waker.set_request();
    } else {
        waker.wake(me);
    }
    true
}

/// Ends the epoch for all CPUs.
fn end_epoch(me: &PerCpu) {
    if STOP.swap(true, AcqRel) {
        return;
    }
    for cpu in percpu::all().iter().filter(|cpu| cpu.index != me.index) {
        wake_cpu(me, cpu);
    }
}

/// Wakes `target` without a token.
pub fn wake_cpu(me: &PerCpu, target: &'static PerCpu) {
    Waker::new(target, RESCHED, interrupts::RESCHED, false, false).wake(me);
}

/// Checks at quiescence that no token was lost: as many are on their way as at the start.
pub fn check_tokens() {
    let waiting = |inbox: &Inbox| inbox.tasks.load(Acquire) + inbox.calls.load(Acquire);
    let found: u32 = INBOXES.iter().map(waiting).sum();
    if found != token_count() {
        let dealt = token_count();
        stop_machine(
            Kind::Loss,
            format_args!("{found} tokens of {dealt} are left"),
        );
    }
}
