// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a handler takes time stamps.
//!
//! Tracing costs nothing when it is off, not even a test of a flag: the handlers of the measured
//! paths are compiled twice, with and without tracing ([`Trace`]), for two vector tables, and the
//! knob changes VBAR_EL2 ([`crate::cpu::traps::set_tracing`]). A CPU that has a neighbour has a
//! third table ([`Shared`]), for the same reason. A traced exit takes the Rust handlers even where
//! the untraced table has a fast path: its time stamps show where time goes, not how short the path
//! could be.

pub use abi::Traced;

use crate::cpu::percpu::PerCpu;
use crate::cpu::tenant::Tenant;

/// Variants of the handlers; each CPU uses one.
pub trait Trace {
    /// Records an event of this CPU.
    fn note_event(cpu: &PerCpu, what: Traced, data: u64);

    /// Returns the neighbour of this CPU, if it has one.
    fn neighbour(cpu: &PerCpu) -> Option<&'static Tenant>;
}

/// Handlers that record nothing, for a CPU without a neighbour.
pub struct Off;

impl Trace for Off {
    #[inline(always)]
    fn note_event(_: &PerCpu, _: Traced, _: u64) {}

    #[inline(always)]
    fn neighbour(_: &PerCpu) -> Option<&'static Tenant> {
        None
    }
}

/// Handlers of a CPU that may have a neighbour.
pub struct Shared;

impl Trace for Shared {
    #[inline(always)]
    fn note_event(_: &PerCpu, _: Traced, _: u64) {}

    #[inline(always)]
    fn neighbour(cpu: &PerCpu) -> Option<&'static Tenant> {
        cpu.neighbour()
    }
}

/// Handlers that record events.
pub struct On;

impl Trace for On {
    #[inline(always)]
    fn note_event(cpu: &PerCpu, what: Traced, data: u64) {
        cpu.vcpu.trace.note_event(what, data);
    }

    #[inline(always)]
    fn neighbour(cpu: &PerCpu) -> Option<&'static Tenant> {
        cpu.neighbour()
    }
}

/// Records the return to the guest; this is the last step of a traced exit.
pub extern "C" fn resume() {
    On::note_event(PerCpu::this(), Traced::Resume, 0);
}
