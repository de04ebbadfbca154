// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU did last at EL2, with time stamps, in a ring of its own.
//!
//! Tracing must cost nothing when it is off, also not a test of a flag: the
//! handlers of the measured paths exist twice, compiled with and without it
//! ([`Trace`]), behind two vector tables, and the knob changes VBAR_EL2.

use core::fmt;

use aarch64_cpu::registers::{CNTVCT_EL0, Readable, VBAR_EL2, Writeable};
use arch::insn;

use crate::percpu::{Local, PerCpu};
use crate::vectors;

/// Events that a ring holds.
pub const EVENTS: usize = 64;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum What {
    /// Nothing yet.
    None,
    /// A synchronous exit; the data is the class.
    Synchronous,
    /// An exit by interrupt; the data is its INTID, noted once it is known.
    Interrupt,
    /// A physical SGI was sent; the data is the value written.
    Sent,
    /// EL2 halts for the guest.
    Halt,
    /// The halt ended.
    Awake,
    /// Back to the guest.
    Resume,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Virtual count, ticks.
    pub time: u64,
    /// What happened.
    pub what: What,
    /// What it happened with.
    pub data: u64,
}

/// The last events of a CPU.
pub struct Ring {
    events: [Event; EVENTS],
    count: usize,
}

impl Ring {
    /// None.
    pub const fn new() -> Self {
        let none = Event {
            time: 0,
            what: What::None,
            data: 0,
        };
        Self {
            events: [none; EVENTS],
            count: 0,
        }
    }

    fn note(&mut self, what: What, data: u64) {
        let time = CNTVCT_EL0.get();
        self.events[self.count % EVENTS] = Event { time, what, data };
        self.count += 1;
    }

    /// The events that it holds, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        let kept = self.count.min(EVENTS);
        (self.count - kept..self.count).map(|n| &self.events[n % EVENTS])
    }
}

impl Ring {
    /// The newest events, the newest first.
    pub fn latest(&self) -> [Event; abi::TRACED] {
        core::array::from_fn(|n| self.events[self.count.wrapping_sub(1 + n) % EVENTS])
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>16} {:?} {:#x}", self.time, self.what, self.data)
    }
}

/// Whether a handler notes what it does.
pub trait Trace {
    /// Notes an event of this CPU.
    fn note(cpu: &PerCpu, what: What, data: u64);
}

/// It does not.
pub struct Off;

impl Trace for Off {
    #[inline(always)]
    fn note(_: &PerCpu, _: What, _: u64) {}
}

/// It does.
pub struct On;

impl Trace for On {
    #[inline(always)]
    fn note(cpu: &PerCpu, what: What, data: u64) {
        ring(cpu, |ring| ring.note(what, data));
    }
}

/// Runs `look` on the ring of this CPU.
pub fn ring<R>(cpu: &PerCpu, look: impl FnOnce(&mut Ring) -> R) -> R {
    let ring: &Local<Ring> = &cpu.vcpu.trace;
    // SAFETY: this CPU's own, and no `look` comes here again.
    unsafe { ring.with(look) }
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
    On::note(PerCpu::this(), What::Resume, 0);
}
