// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a handler takes time stamps.
//!
//! Tracing costs nothing when it is off, not even a test of a flag: the handlers of
//! the measured paths are compiled twice, with and without it ([`Trace`]), behind two
//! vector tables, and the knob changes VBAR_EL2 ([`crate::cpu::traps::set_tracing`]).
//! A traced exit takes the Rust handlers, also where the other table has a fast path:
//! its stamps show where time goes, not how little it could be.

pub use abi::Traced;

use crate::cpu::percpu::PerCpu;

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

/// The last thing before a traced return to the guest.
pub extern "C" fn resume() {
    On::note(PerCpu::this(), Traced::Resume, 0);
}
