// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts events of a CPU; the CPU counts them itself, and the reporting CPU reads the counts.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The counted events; records give their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// Interrupts sent, to other CPUs or to the CPU itself.
    Sent,
    /// Interrupts omitted because the target polled.
    Elided,
    /// Interrupts omitted because the request was already pending.
    Coalesced,
    /// Interrupts taken.
    Taken,
    /// Polls that reached their limit.
    PollTimeout,
    /// Times that WFI was executed.
    Halted,
    /// Pauses of polls, where that is measured: returns of WFE or WFET. In each poll, all returns
    /// but the last found no request.
    Pauses,
    /// Ticks spent polling, where that is measured.
    PollTicks,
    /// Ticks spent in WFI, trapped or not, where that is measured.
    HaltTicks,
    /// Ticks by which polls exceeded their limit.
    Overshoot,
}

impl Event {
    /// All events, in order.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Sent, "ipi.sent"),
        (Self::Elided, "ipi.elided"),
        (Self::Coalesced, "ipi.coalesced"),
        (Self::Taken, "irq.taken"),
        (Self::PollTimeout, "wake.timeout"),
        (Self::Halted, "halts"),
        (Self::Pauses, "poll.pauses"),
        (Self::PollTicks, "poll.ticks"),
        (Self::HaltTicks, "halt.ticks"),
        (Self::Overshoot, "poll.overshoot"),
    ];
}

/// Counts of one CPU.
pub struct Tally([AtomicU64; Event::ALL.len()]);

impl Tally {
    /// Counts that are all zero.
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Event::ALL.len()])
    }

    /// Returns the offset of `event`'s count, for assembly.
    pub const fn offset(event: Event) -> usize {
        event as usize * size_of::<AtomicU64>()
    }

    /// Counts one event. Only the CPU itself calls this, including its handlers: if a handler counted between the load
    /// and the store, a count would be lost, so no other code uses a counter that handlers use.
    #[inline(always)]
    pub fn add(&self, event: Event) {
        self.add_many(event, 1);
    }

    /// Counts `many` more events.
    #[inline(always)]
    pub fn add_many(&self, event: Event, many: u64) {
        let count = &self.0[event as usize];
        count.store(count.load(Relaxed) + many, Relaxed);
    }

    /// Returns the count of `event`.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Relaxed)
    }
}
