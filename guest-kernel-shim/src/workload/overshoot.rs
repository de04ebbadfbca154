// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `overshoot`: a CPU polls up to its limit, and no CPU wakes it. A sample is the time by which the poll exceeded
//! the limit, because of the granularity of its pause.
//!
//! Polls follow each other without a pause unless the cell has a gap, so a poll that ends at an edge
//! of the event stream is followed by a poll that begins there: the phase of the stream is known,
//! and the samples show it. The first poll begins at an edge as well.

use wait::stream::Stream;

use crate::alarm::Alarm;
use crate::clock;
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::tally::Event;
use crate::workload::samples::Samples;
use crate::workload::stream;

/// The CPU that polls.
pub struct Poller<'s> {
    /// Number of polls that are samples.
    pub count: u32,
    /// Ticks of the pause between two polls.
    pub gap: u64,
    /// The event stream that may end polls, if there is one.
    pub stream: Option<Stream>,
    /// The memory for samples.
    pub samples: &'s mut Samples,
}

impl Body for Poller<'_> {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let over = || me.tally.get(Event::Overshoot);
        if let Some(on) = self.stream {
            stream::wait_for_edge(&Alarm::new(), on);
        }
        for _ in 0..self.count {
            if self.gap != 0 {
                clock::pause(self.gap);
            }
            let before = over();
            // A poll that a request ends is not a sample. No CPU is expected to make a request.
            if idle.wait(me) == 0 {
                self.samples.record(over() - before);
            }
        }
    }
}
