// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a wake-up goes: `pingpong` once more, with time stamps at
//! fixed points.
//!
//! The points of a round trip are, in order: before the request is stored; EL2
//! entered at the sender; the physical interrupt sent; EL2 entered, or its halt
//! ended, at the receiver; back to the guest; its vector; the woken task; the
//! answer received. A point that a way of waiting does not pass is left out,
//! and its stage is part of the next one. So the stages of a sample add up to
//! the sample exactly.
//!
//! EL2's stamps come from the rings of both CPUs, by hypercall between two
//! samples. What stamping costs shows as the difference between
//! [`Stamped::traced`] and `total`.

use abi::Traced;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use hist::Histogram;
use pages::Pool;

use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::wake::Waker;
use crate::{clock, hypervisor};

/// The stages, each by the point that ends it.
pub const STAGES: [&str; 7] = [
    "send",
    "el2-send",
    "travel",
    "el2-receive",
    "vector",
    "wake",
    "answer",
];

/// When the receiver's task ran last, ticks; on a line of its own.
#[repr(align(64))]
struct Running(AtomicU64);

static RUNNING: Running = Running(AtomicU64::new(0));

/// A vCPU's events at EL2, the newest first; none without hypervisor.
fn events(vcpu: usize) -> [(u64, u64); abi::EVENTS] {
    if hypervisor::present() {
        hypervisor::events(vcpu)
    } else {
        [(0, 0); abi::EVENTS]
    }
}

/// The time of the newest event of one of `kinds` that is not after `limit`.
fn newest(events: &[(u64, u64)], kinds: &[Traced], limit: u64) -> u64 {
    let mut events = events.iter().filter(|(time, _)| *time <= limit);
    let found = events.find(|(_, kind)| kinds.iter().any(|&one| one as u64 == *kind));
    found.map_or(0, |(time, _)| *time)
}

/// Wake-ups that were taken apart.
#[repr(C)]
pub struct Stamped {
    /// Where the time goes, by [`STAGES`].
    pub stages: [Histogram; STAGES.len()],
    /// From end to end: more than without, by what the time stamps cost.
    pub traced: Histogram,
}

impl Stamped {
    /// Empty, in memory of `pool`.
    pub fn place(pool: &mut Pool) -> &'static mut Self {
        let place = pool.take(size_of::<Self>() as u64) as *mut Self;
        // SAFETY: fresh zeroed memory of that size, which is never taken back;
        // all zeroes is empty histograms.
        unsafe { &mut *place }
    }

    /// Forgets what was taken apart.
    pub fn clear(&mut self) {
        let all = self.stages.iter_mut().chain([&mut self.traced]);
        all.for_each(Histogram::clear);
    }
}

/// The CPU that measures.
pub struct Near<'s> {
    /// Wakes the other one.
    pub waker: Waker,
    /// Round trips.
    pub count: u32,
    /// Where samples go.
    pub samples: &'s mut Stamped,
}

impl Body for Near<'_> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        for _ in 0..self.count {
            let start = clock::now();
            self.waker.wake(me);
            idle.wait(me);
            let end = clock::now();
            self.record(me, start, end);
        }
    }
}

impl Near<'_> {
    fn record(&mut self, me: &PerCpu, start: u64, end: u64) {
        let running = RUNNING.0.load(Acquire);
        let far = self.waker.target();
        let here = events(me.index);
        let there = events(far.index);
        let sent = newest(&here, &[Traced::Sent], running);
        let resumed = newest(&there, &[Traced::Resume], running);
        let points = [
            newest(&here, &[Traced::Synchronous], sent),
            sent,
            newest(&there, &[Traced::Awake, Traced::Interrupt], resumed),
            resumed,
            far.vector_at.load(Relaxed),
            running,
            end,
        ];
        let mut last = start;
        for (stage, point) in self.samples.stages.iter_mut().zip(points) {
            // A point before the last one is of an earlier wake-up.
            if point >= last && point <= end {
                stage.record(point - last);
                last = point;
            }
        }
        self.samples.traced.record(end - start);
    }
}

/// The other one.
pub struct FarSide {
    /// Wakes the first one.
    pub waker: Waker,
    /// Round trips.
    pub count: u32,
}

impl Body for FarSide {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        for _ in 0..self.count {
            idle.wait(me);
            RUNNING.0.store(clock::now(), Release);
            self.waker.wake(me);
        }
    }
}
