// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups at random, to lose one if one can be lost: `rouse.stress=COUNT`.
//!
//! Tokens wander from CPU to CPU, half as many as there are CPUs. Whoever has
//! one waits a little and passes it on to another CPU, as a task or as a
//! function call, eliding the interrupt or not. Every CPU waits in a way, with
//! traps and delivery, that it draws anew after some tokens. A token that does
//! not arrive is a lost wake-up: EL2's watchdog sees that nothing moves and
//! stops the machine, and in the end the books have to balance.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use aarch64_cpu::registers::{DAIF, Readable};
use abi::WatchPoint;
use plan::{Cell, Deliver, Hint, HostPoll, Shape, Trap, Wait, Wake, Word, Workload};
use platform::MAX_CPUS;
use wait::request::{CALL, RESCHED};

use crate::idle::{self, Body, Idle};
use crate::percpu::{self, PerCpu};
use crate::wake::Waker;
use crate::workload::call;
use crate::{clock, crew, hypervisor, interrupts, output, probe, stage};

/// Tokens that a CPU takes before it draws another way of waiting.
const BLOCK: u32 = 32;
/// Nothing moving for this long is a lost wake-up, microseconds; far longer
/// than any CPU of an overloaded emulator stands still.
const WATCH_US: u32 = 10_000_000;
/// The same where one is lost on purpose.
const WATCH_LOSS_US: u32 = 20_000;
/// The wake-up that is lost on purpose, if one is to be.
const LOSS: i64 = 500;

/// Tokens on their way to a CPU.
#[repr(align(64))]
struct Inbox {
    /// Sent as tasks.
    tasks: AtomicU32,
    /// Sent as function calls.
    calls: AtomicU32,
}

static INBOXES: [Inbox; MAX_CPUS] = [const {
    Inbox {
        tasks: AtomicU32::new(0),
        calls: AtomicU32::new(0),
    }
}; MAX_CPUS];
static POINTS: [WatchPoint; MAX_CPUS] = [const {
    WatchPoint {
        progress: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        request: AtomicU64::new(0),
    }
}; MAX_CPUS];
/// Wake-ups that are still to be sent.
static LEFT: AtomicI64 = AtomicI64::new(0);
static SENT: AtomicU64 = AtomicU64::new(0);
static LOSE: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);

/// Sends `count` wake-ups; how many were lost.
///
/// With `lose` one is lost on purpose, to see that it is noticed.
pub fn run(count: u64, seed: u64, lose: bool) -> u64 {
    stage!("stress", "{count} wake-ups, seed {seed}");
    let cpus = percpu::online().count();
    if cpus < 2 {
        output::line(format_args!("stress: needs 2 CPUs; use --cpus"));
        return 1;
    }
    LEFT.store(count as i64, Release);
    SEED.store(seed, Release);
    call::prepare(0);
    for (point, cpu) in POINTS.iter().zip(percpu::all()) {
        let word = cpu.request.word().as_ptr() as u64;
        point.request.store(word, Relaxed);
    }
    LOSE.store(lose, Release);
    let watch = if lose { WATCH_LOSS_US } else { WATCH_US };
    if hypervisor::present() {
        hypervisor::watch(POINTS.as_ptr() as u64, clock::ticks(watch));
    }
    crew::everywhere(runner);
    if hypervisor::present() {
        hypervisor::watch(POINTS.as_ptr() as u64, 0);
    }
    let received: u64 = POINTS
        .iter()
        .map(|point| point.progress.load(Acquire))
        .sum();
    let on_the_way = |inbox: &Inbox| inbox.tasks.load(Acquire) + inbox.calls.load(Acquire);
    let left: u64 = INBOXES
        .iter()
        .map(|inbox| u64::from(on_the_way(inbox)))
        .sum();
    let sent = SENT.load(Acquire);
    let lost = sent.abs_diff(received + left);
    output::line(format_args!(
        "stress: {sent} wake-ups sent on {cpus} CPUs, {received} received, {left} on the way at the end, {lost} lost"
    ));
    lost
}

/// What every CPU does.
fn runner() {
    let me = PerCpu::this();
    let seed = SEED.load(Acquire);
    let mut random = Random::new(seed ^ (me.index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let tokens = percpu::online().count() / 2;
    if me.index < tokens {
        pass(me, &mut random);
    }
    while !STOP.load(Acquire) {
        let cell = draw(me, &mut random);
        crew::turn(&cell);
        // With stamps there is something to show, should it come to a dump;
        // without them the exits are handled by other code.
        crew::trace(LOSE.load(Acquire) || random.below(2) == 0);
        let setting = crew::setting(&cell);
        idle::with(
            &setting,
            &mut Block {
                random: &mut random,
            },
        );
    }
    crew::trace(false);
    crew::turn_back();
}

/// A way of waiting, and everything that goes with it. The first CPU keeps
/// its interrupts at EL2, where the watchdog is.
fn draw(me: &PerCpu, random: &mut Random) -> Cell {
    let features = probe::features();
    let wait = loop {
        let wait = random.of(Wait::ALL);
        if wait != Wait::Wfet || features.wfxt {
            break wait;
        }
    };
    let deliver = if me.index == 0 {
        Deliver::Inject
    } else {
        random.of(Deliver::ALL)
    };
    Cell {
        workload: Workload::Pingpong,
        shape: Shape::One,
        wait,
        trap: random.of(Trap::ALL),
        deliver: if hypervisor::present() {
            deliver
        } else {
            Deliver::Direct
        },
        // Every CPU looks at both request bits, so any sender may elide.
        wake: Wake::Elide,
        poll_limit_us: random.below(20) as u32 + 1,
        host_poll_us: random.below(2) as u32 * 5,
        // A WFE that nothing bounds would wait for ever on an event that was
        // lost, as multi-threaded emulators lose some.
        event_stream_us: match wait {
            Wait::Wfe | Wait::WfeSev => 100,
            _ => random.below(2) as u32 * 100,
        },
        host_poll: random.of(HostPoll::ALL),
        hint: random.of(Hint::ALL),
        gap_us: 0,
    }
}

/// A stretch of waits of one kind.
struct Block<'r> {
    random: &'r mut Random,
}

impl Body for Block<'_> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        for _ in 0..BLOCK {
            if STOP.load(Acquire) {
                return;
            }
            // Before the first wait there may be a token already, whose request
            // was taken by whatever waited before.
            for _ in 0..receive(me) {
                pass(me, self.random);
            }
            if STOP.load(Acquire) {
                return;
            }
            idle.wait(me);
            assert!(
                DAIF.matches_all(DAIF::I::Unmasked),
                "a wait came back with interrupts masked"
            );
        }
        for _ in 0..receive(me) {
            pass(me, self.random);
        }
    }
}

/// Takes what has arrived for this CPU.
fn receive(me: &PerCpu) -> u32 {
    let inbox = &INBOXES[me.index];
    let tokens = inbox.tasks.swap(0, AcqRel) + inbox.calls.swap(0, AcqRel);
    let point = &POINTS[me.index];
    point.progress.fetch_add(u64::from(tokens), AcqRel);
    point.waiting.fetch_sub(u64::from(tokens), AcqRel);
    tokens
}

/// Passes a token on to another CPU, after a while.
fn pass(me: &PerCpu, random: &mut Random) {
    let left = LEFT.fetch_sub(1, AcqRel);
    if left <= 0 {
        stop(me);
        return;
    }
    if random.below(8) == 0 {
        clock::pause(random.below(clock::ticks(4)));
    }
    let cpus = percpu::all();
    let other = 1 + random.below(cpus.len() as u64 - 1) as usize;
    let target = cpus[(me.index + other) % cpus.len()];
    let inbox = &INBOXES[target.index];
    POINTS[target.index].waiting.fetch_add(1, AcqRel);
    SENT.fetch_add(1, AcqRel);
    let elide = random.below(2) == 0;
    let (bit, intid) = if random.below(2) == 0 {
        inbox.tasks.fetch_add(1, AcqRel);
        (RESCHED, interrupts::RESCHED)
    } else {
        inbox.calls.fetch_add(1, AcqRel);
        (CALL, interrupts::CALL)
    };
    if left == LOSS && LOSE.load(Acquire) {
        return;
    }
    Waker::new(target, bit, intid, elide, true).wake(me);
}

/// Ends it, for all.
fn stop(me: &PerCpu) {
    STOP.store(true, Release);
    for cpu in percpu::online().filter(|cpu| !core::ptr::eq(*cpu, me)) {
        Waker::new(cpu, RESCHED, interrupts::RESCHED, false, false).wake(me);
    }
}

/// Marsaglia's xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators, scrambled", 2016): nothing depends on its quality.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 32) % limit.max(1)
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }
}
