// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the time of a wake-up into stages: runs `pingpong` once more, with time stamps at fixed points.
//!
//! The points of a round trip are, in order: before the request is stored; EL2 entered at the sender; the
//! physical interrupt sent; EL2 entered, or its halt ended, at the receiver; back to the guest; the guest's
//! vector; the woken task; the answer received. A point that a way of waiting does not pass is omitted, and
//! its stage is part of the next stage. So the stages of a sample add up to the sample exactly.
//!
//! EL2's stamps come from logs of both CPUs in the guest's memory, which are read between two
//! samples. The cost of stamping is the difference between [`Stamped::traced`] and `total`. Together
//! with the guest's logs, EL2's logs also show where the CPUs were meanwhile: see crate `parts`.

use abi::{TimeLog, Traced, event_of};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use arch::insn;
use hist::Histogram;
use pages::Pool;
pub use parts::CPUS;
use parts::{Account, Totals};

use crate::clock;
use crate::logs::{self, Logs, all_logs};
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::target::Noting;
use crate::wake::Waker;
use crate::workload::preparation::Before;

/// The stages, each named by the point that ends it.
pub const STAGES: [&str; 7] = [
    "send",
    "el2-send",
    "travel",
    "el2-receive",
    "vector",
    "wake",
    "answer",
];

/// When the receiver's task last ran, in ticks; on its own cache line.
#[repr(align(64))]
struct Running(AtomicU64);

static RUNNING: Running = Running(AtomicU64::new(0));

/// Returns the time of the newest event of `kinds` in `log` between `start` and `end`; 0 if there is none.
fn newest_time(log: &TimeLog, kinds: &[Traced], start: u64, end: u64) -> u64 {
    let numbers = (0..log.count()).rev();
    let notes = numbers.map_while(|number| log.get(number));
    let mut notes = notes.take_while(|note| note.time >= start);
    let found = notes.find(|note| {
        let (what, _) = event_of(note.word);
        note.time <= end && kinds.iter().any(|&kind| kind as u64 == what)
    });
    found.map_or(0, |note| note.time)
}

/// Wake-ups with their stages.
#[repr(C)]
pub struct Stamped {
    /// Times of the stages, in the order of [`STAGES`].
    pub stages: [Histogram; STAGES.len()],
    /// Total times, lengthened by the cost of time stamps.
    pub traced: Histogram,
}

impl Stamped {
    /// Returns empty stages in memory of `pool`.
    pub fn place_in(pool: &mut Pool) -> &'static mut Self {
        logs::place_logs(pool);
        let place = pool.take(size_of::<Self>() as u64) as *mut Self;
        // SAFETY: this is fresh zeroed memory of that size, which is never taken back, and
        // histograms that are all zeroes are empty.
        unsafe { &mut *place }
    }

    /// Removes the stages so far. No wake-up may be recorded meanwhile.
    pub fn clear(&mut self) {
        let all = self.stages.iter_mut().chain([&mut self.traced]);
        all.for_each(Histogram::clear);
        all_logs()
            .into_iter()
            .flatten()
            .flatten()
            .for_each(TimeLog::clear);
    }
}

/// The CPU that measures.
pub struct Near<'s, B> {
    /// Wakes the other CPU.
    pub waker: Waker,
    /// Number of round trips.
    pub count: u32,
    /// Work before each round trip.
    pub before: B,
    /// The memory for samples.
    pub samples: &'s mut Stamped,
    /// The logs of the two CPUs.
    pub logs: &'static [Logs; CPUS],
    /// Where the two CPUs were.
    pub account: Account<'static>,
    /// The end of the last sample.
    pub end: u64,
}

impl<B: Before> Body for Near<'_, B> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let noting = Noting::new(me, &self.logs[0][0]);
        for _ in 0..self.count {
            if self.before.pause_ticks() != 0 {
                self.pause();
            }
            self.before.empty_caches();
            let start = clock::now();
            self.waker.wake(me);
            idle.wait(&noting);
            let end = clock::now();
            self.record(start, end);
        }
    }
}

impl<B: Before> Near<'_, B> {
    /// Pauses like [`clock::pause`], and meanwhile reads the other CPU's log entries, of which there may be many: one
    /// for each trapped check of a poll.
    fn pause(&mut self) {
        let end = clock::now() + self.before.pause_ticks();
        while clock::now() < end {
            let noted = self.account.noted_until(1);
            self.account.follow(1, noted);
            insn::yield_now();
        }
    }

    /// Returns where the two CPUs were, once both have ended.
    pub fn totals(mut self) -> Totals {
        (0..CPUS).for_each(|cpu| self.account.follow(cpu, self.end));
        self.account.totals()
    }

    fn record(&mut self, start: u64, end: u64) {
        let running = RUNNING.0.load(Acquire);
        let far = self.waker.target();
        let [[_, here], [_, there]] = self.logs;
        let sent = newest_time(here, &[Traced::Sent], start, running);
        let resumed = newest_time(there, &[Traced::Resume], start, running);
        let points = [
            newest_time(here, &[Traced::Synchronous], start, sent),
            sent,
            newest_time(there, &[Traced::Awake, Traced::Interrupt], start, resumed),
            resumed,
            far.vector_at.load(Relaxed),
            running,
            end,
        ];
        let mut last = start;
        for (stage, point) in self.samples.stages.iter_mut().zip(points) {
            // A stamp that is older than the last point belongs to an earlier wake-up.
            if point >= last && point <= end {
                stage.record(point - last);
                last = point;
            }
        }
        self.samples.traced.record(end - start);
        self.account.sample(start, end);
        self.account.follow(0, end);
        // The log entries that the other CPU made before it stored this value are visible.
        self.account.follow(1, running);
        self.end = end;
    }
}

/// The other CPU.
pub struct FarSide {
    /// Wakes the first CPU.
    pub waker: Waker,
    /// Number of round trips.
    pub count: u32,
    /// The log of the CPU's polls and halts.
    pub log: &'static TimeLog,
}

impl Body for FarSide {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let noting = Noting::new(me, self.log);
        for _ in 0..self.count {
            idle.wait(&noting);
            RUNNING.0.store(clock::now(), Release);
            self.waker.wake(me);
        }
    }
}
