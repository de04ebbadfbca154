// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU did last at EL2, with time stamps, in a ring of its own.
//!
//! Tracing must cost nothing when it is off, also not a test of a flag: the
//! handlers of the measured paths exist twice, compiled with and without it
//! ([`Trace`]), behind two vector tables, and the knob changes VBAR_EL2.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, AtomicUsize};

use aarch64_cpu::registers::{CNTVCT_EL0, Readable, VBAR_EL2, Writeable};
pub use abi::Traced;
use arch::insn;

use crate::percpu::PerCpu;
use crate::vectors;

/// Events that a ring holds.
pub const EVENTS: usize = 64;

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Virtual count, ticks.
    pub time: u64,
    /// What happened, a [`Traced`].
    pub what: u64,
    /// What it happened with.
    pub data: u64,
}

/// The last events of a CPU. It alone notes; anybody may look, and sees whole
/// events only as long as it does not note any.
pub struct Ring {
    events: [[AtomicU64; 3]; EVENTS],
    count: AtomicUsize,
}

impl Ring {
    /// None.
    pub const fn new() -> Self {
        Self {
            events: [const { [const { AtomicU64::new(0) }; 3] }; EVENTS],
            count: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn note(&self, what: Traced, data: u64) {
        let count = self.count.load(Relaxed);
        let event = &self.events[count % EVENTS];
        event[0].store(CNTVCT_EL0.get(), Relaxed);
        event[1].store(what as u64, Relaxed);
        event[2].store(data, Relaxed);
        self.count.store(count + 1, Release);
    }

    /// Event `number`, counted from the first one ever.
    fn event(&self, number: usize) -> Event {
        let [time, what, data] = &self.events[number % EVENTS];
        Event {
            time: time.load(Relaxed),
            what: what.load(Relaxed),
            data: data.load(Relaxed),
        }
    }

    /// The events that it holds, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        let count = self.count.load(Acquire);
        (count - count.min(EVENTS)..count).map(|number| self.event(number))
    }

    /// The newest events, the newest first.
    pub fn latest(&self) -> [Event; abi::EVENTS] {
        let count = self.count.load(Acquire);
        core::array::from_fn(|n| self.event(count.wrapping_sub(1 + n)))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = Traced::ALL
            .get(self.what as usize)
            .map_or("?", |what| what.name());
        write!(f, "{:>16} {what} {:#x}", self.time, self.data)
    }
}

/// Whether a handler notes what it does.
pub trait Trace {
    /// Notes an event of this CPU.
    fn note(cpu: &PerCpu, what: Traced, data: u64);
}

/// It does not.
pub struct Off;

impl Trace for Off {
    #[inline(always)]
    fn note(_: &PerCpu, _: Traced, _: u64) {}
}

/// It does.
pub struct On;

impl Trace for On {
    #[inline(always)]
    fn note(cpu: &PerCpu, what: Traced, data: u64) {
        cpu.vcpu.trace.note(what, data);
    }
}

/// Turns tracing on or off for this CPU.
pub fn set(on: bool) {
    VBAR_EL2.set(if on {
        vectors::traced()
    } else {
        vectors::plain()
    });
    insn::isb();
}

/// The last thing before a traced return to the guest.
pub extern "C" fn resume() {
    On::note(PerCpu::this(), Traced::Resume, 0);
}
