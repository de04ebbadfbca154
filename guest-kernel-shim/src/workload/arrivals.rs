// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `notify` as an open loop: requests arrive at given times, whether or not earlier requests are
//! done. A sample lasts from the time at which a request was meant to arrive until the task that serves
//! it runs. So the delay of a request that is sent late, or that waits for other requests, counts.
//!
//! The times are drawn before a block, from the seed, the pair and the number of samples so far, so compared cells
//! get the same times. No request is answered: an answer would be a second wake-up, of a CPU that does not wait.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::task::{Context, Poll};

use arch::insn;
use pages::Pool;
use plan::{Cell, Workload};
use sched::arrivals::{self, Queue};
use sched::random::Random;
use spin::once::Once;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::workload::samples::{record, round_count};
use crate::workload::shared_state::CHANNELS;
use crate::workload::times::Times;

/// The times of a block's requests, in ticks from the block's beginning, pair by pair.
static DRAWN: Once<&'static [AtomicU64]> = Once::new();

/// The measurements of the two sides of a pair in a block.
struct Pair {
    /// The time at which the block began.
    begun: AtomicU64,
    /// When the pair's first request and its last request were taken, in ticks from the block's beginning.
    first: AtomicU64,
    last: AtomicU64,
    /// The largest number of requests that had arrived and were not yet served.
    longest: AtomicU64,
}

static PAIRS: [Pair; 16] = [const {
    Pair {
        begun: AtomicU64::new(0),
        first: AtomicU64::new(0),
        last: AtomicU64::new(0),
        longest: AtomicU64::new(0),
    }
}; 16];

/// The intervals and queues of the requests of all pairs.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Intervals between requests.
    pub intervals: u64,
    /// The intended sum of the intervals, in ticks.
    pub asked: u64,
    /// The actual sum of the intervals, from one taken request to the next, in ticks.
    pub reached: u64,
    /// The largest number of requests of a pair that had arrived and were not yet served.
    pub longest: u64,
}

impl Load {
    /// A value without requests.
    pub const ZERO: Self = Self {
        intervals: 0,
        asked: 0,
        reached: 0,
        longest: 0,
    };

    /// Adds the counts from `cell`'s last block, which has `count` samples.
    pub fn add(&mut self, cell: &Cell, count: u32) {
        for (number, pair) in PAIRS.iter().enumerate().take(cell.groups as usize) {
            let times = &request_times(number, count)[..count as usize];
            let [first, .., last] = times else {
                continue;
            };
            self.intervals += times.len() as u64 - 1;
            self.asked += last.load(Relaxed) - first.load(Relaxed);
            self.reached += pair.last.load(Acquire) - pair.first.load(Acquire);
            self.longest = self.longest.max(pair.longest.load(Acquire));
        }
    }
}

/// Takes memory of `pool` for the times of `requests` requests.
pub fn place_times(pool: &mut Pool, requests: u64) {
    DRAWN.call_once(|| pool.fill((0..requests as usize).map(|_| AtomicU64::new(0))));
}

/// Returns when a pair's requests arrive in a block of `count` samples.
fn request_times(pair: usize, count: u32) -> &'static [AtomicU64] {
    let each = round_count(Workload::Notify, count) as usize;
    let drawn = DRAWN.get().copied().unwrap_or_default();
    &drawn[pair * each..][..each]
}

/// Draws the times for a block of `count` samples, after the cell's `done` earlier samples.
pub fn draw_times(cell: &Cell, count: u32, done: u32, seed: u64) {
    for pair in 0..cell.groups as usize {
        let mut intervals = Times {
            random: Random::at(seed, pair as u64, u64::from(done)),
            spread: cell.spread,
            mean: clock::us_to_ticks(cell.arrival_us),
        };
        let drawn = arrivals::times(|| intervals.draw());
        for (place, time) in request_times(pair, count).iter().zip(drawn) {
            place.store(time, Relaxed);
        }
    }
}

/// Spawns the tasks of this CPU.
pub fn spawn(cell: &Cell, count: u32, cpu: &'static Cpu, cpus: usize) {
    let service = clock::us_to_ticks(cell.service_us);
    for pair in 0..cell.groups as usize {
        let there = &CHANNELS[2 * pair];
        if 2 * pair % cpus == cpu.index {
            cpu.spawn(send_requests(pair, there, count, cpu));
        }
        if (2 * pair + 1) % cpus == cpu.index {
            cpu.spawn(serve_requests(pair, there, count, service));
        }
    }
}

async fn send_requests(pair: usize, there: &'static Channel, count: u32, cpu: &'static Cpu) {
    let begun = clock::now();
    PAIRS[pair].begun.store(begun, Release);
    for time in request_times(pair, count) {
        let at = begun + time.load(Relaxed);
        Due { at, cpu }.await;
        there.send().await;
    }
}

async fn serve_requests(pair: usize, there: &'static Channel, count: u32, service: u64) {
    let Pair {
        begun,
        first,
        last,
        longest,
    } = &PAIRS[pair];
    let times = request_times(pair, count);
    let samples = &times[..count as usize];
    let mut queue = Queue::default();
    for number in 0..times.len() {
        there.receive().await;
        let now = clock::now();
        // The round after the last sample is not recorded, but makes all samples alike.
        if let Some(time) = samples.get(number) {
            let passed = now - begun.load(Acquire);
            record(passed - time.load(Relaxed));
            queue.take(number, passed, |other| {
                samples.get(other).map(|time| time.load(Relaxed))
            });
            let place = if number == 0 { first } else { last };
            place.store(passed, Release);
        }
        while clock::now() < now + service {
            insn::yield_now();
        }
    }
    longest.store(queue.longest() as u64, Release);
}

/// Waits until a given time, without halting, so that the next step is on time; other tasks of the CPU run first.
struct Due {
    at: u64,
    cpu: &'static Cpu,
}

impl Future for Due {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while clock::now() < self.at {
            insn::yield_now();
            let Cpu { inbox, rung, .. } = self.cpu;
            if !(self.cpu.is_empty() && inbox.is_empty()) || rung.is_due() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}
