// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wakes another CPU: asks it to leave its idle loop.

use arch::{gic_cpu, insn};
use wait::idle::Idle;
use wait::request::Notice;

use crate::percpu::PerCpu;
use crate::tally::Event;

/// How a target is woken: values that stay the same for all of its wake-ups.
#[derive(Clone, Copy)]
pub struct Waker {
    target: &'static PerCpu,
    /// The request bit to set.
    bit: u32,
    /// The value of ICC_SGI1R_EL1 for the interrupt.
    sgi: u64,
    /// Whether a target that polls gets no interrupt.
    elide: bool,
    /// Whether a target that polls waits for an event.
    event: bool,
}

impl Waker {
    /// Returns a waker of `target` that sets request `bit` and, if the target needs an interrupt, sends SGI
    /// `intid`.
    pub fn new(target: &'static PerCpu, bit: u32, intid: u32, elide: bool, event: bool) -> Self {
        Self {
            target,
            bit,
            sgi: gic_cpu::sgi_value(intid, target.mpidr),
            elide,
            event,
        }
    }

    /// Returns the waker of a target that waits with `idle`, like this CPU. The waking loop then need not test whether
    /// an event is needed.
    #[inline(always)]
    pub fn for_peer(self, idle: &impl Idle<PerCpu>) -> Self {
        Self {
            event: idle.needs_event(),
            ..self
        }
    }

    /// Returns the CPU that the waker wakes.
    pub fn target(&self) -> &'static PerCpu {
        self.target
    }

    /// Sets only the request; the caller sends the interrupt.
    #[inline(always)]
    pub fn set_request(&self) {
        self.target.request.wake(self.bit, false);
    }

    /// Wakes the target, which then sees the caller's earlier stores.
    #[inline(always)]
    pub fn wake(&self, me: &PerCpu) {
        match self.target.request.wake(self.bit, self.elide) {
            Notice::Send => {
                gic_cpu::send_sgi_value(self.sgi);
                me.tally.add(Event::Sent);
            }
            Notice::Elided => {
                if self.event {
                    insn::dsb_ishst();
                    insn::sev();
                }
                me.tally.add(Event::Elided);
            }
            Notice::Coalesced => me.tally.add(Event::Coalesced),
        }
    }
}
