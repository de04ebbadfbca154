// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `stream`: a CPU waits in WFE, which only the event stream ends. A sample is the time from the end of
//! one wait to the end of the next: from edge to edge of the counter's bit, so that a sample is a whole period.
//!
//! Before each WFE, the event register is emptied: if an event ended a WFE and also stayed in the
//! register, every second WFE would not wait. The alarm bounds the waits on machines whose stream
//! makes no events; a wait that the alarm ended is counted as ended by an interrupt.

use arch::insn;
use wait::stream::Stream;

use crate::alarm::Alarm;
use crate::clock;
use crate::workload::samples::Samples;

/// Number of periods after which the alarm ends a wait.
const PATIENCE: u64 = 8;

/// The CPU that waits for the event stream.
pub struct Listener<'s> {
    /// The event stream, which is on.
    pub stream: Stream,
    /// Number of periods that are samples.
    pub count: u32,
    /// The memory for samples.
    pub samples: &'s mut Samples,
}

impl Listener<'_> {
    /// Waits for the first edge, then for `count` more edges.
    pub fn run(&mut self) {
        let alarm = Alarm::new();
        let mut last = wait_for_edge(&alarm, self.stream);
        for _ in 0..self.count {
            let edge = wait_for_edge(&alarm, self.stream);
            self.samples.record(edge - last);
            last = edge;
        }
    }
}

/// Waits for an edge of `stream`, which is on, or for `alarm`; returns the time at which software sees it.
#[inline(always)]
pub fn wait_for_edge(alarm: &Alarm, stream: Stream) -> u64 {
    alarm.set(PATIENCE * stream.period());
    insn::forget_events();
    insn::wfe();
    let end = clock::now();
    alarm.clear();
    end
}
