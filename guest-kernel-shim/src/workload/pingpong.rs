// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `pingpong`: two CPUs wake each other, like two tasks that pass a byte through two pipes
//! (`perf bench sched pipe`). A sample is a round trip.

use plan::Workload;

use crate::clock;
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::wake::Waker;
use crate::workload::preparation::Before;
use crate::workload::samples::{Samples, rounds, sample_begins, sample_ends};

/// The CPU that measures.
pub struct Near<'s, B> {
    /// Wakes the other CPU.
    pub waker: Waker,
    /// Number of round trips that are samples.
    pub count: u32,
    /// Work before each round trip.
    pub before: B,
    /// The memory for samples.
    pub samples: &'s mut Samples,
}

impl<B: Before> Body for Near<'_, B> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let waker = self.waker.for_peer(&idle);
        for recorded in rounds(Workload::Pingpong, self.count) {
            if self.before.pause_ticks() != 0 {
                clock::pause(self.before.pause_ticks());
            }
            self.before.empty_caches();
            let start = sample_begins();
            waker.wake(me);
            idle.wait(me);
            let ticks = sample_ends() - start;
            if !recorded {
                return;
            }
            self.samples.record(ticks);
        }
    }
}

/// The other CPU.
pub struct Far {
    /// Wakes the first CPU.
    pub waker: Waker,
    /// Number of round trips, including round trips that are not samples.
    pub count: u32,
}

impl Body for Far {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let waker = self.waker.for_peer(&idle);
        for _ in 0..self.count {
            idle.wait(me);
            waker.wake(me);
        }
    }
}
