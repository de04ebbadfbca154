// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pingpong`: two CPUs wake each other, as two tasks do that pass a byte
//! through two pipes (`perf bench sched pipe`). A sample is a round trip.

use crate::clock;
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::wake::Waker;
use crate::workload::samples::{Samples, sample_begins, sample_ends};

/// The CPU that measures.
pub struct Near<'s> {
    /// Wakes the other one.
    pub waker: Waker,
    /// Round trips.
    pub count: u32,
    /// Ticks between a round trip and the next.
    pub gap: u64,
    /// Where samples go.
    pub samples: &'s mut Samples,
}

impl Body for Near<'_> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        for _ in 0..self.count {
            if self.gap != 0 {
                clock::pause(self.gap);
            }
            let start = sample_begins();
            self.waker.wake(me);
            idle.wait(me);
            let ticks = sample_ends() - start;
            self.samples.record(ticks);
        }
    }
}

/// The other one.
pub struct Far {
    /// Wakes the first one.
    pub waker: Waker,
    /// Round trips.
    pub count: u32,
}

impl Body for Far {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        for _ in 0..self.count {
            idle.wait(me);
            self.waker.wake(me);
        }
    }
}
