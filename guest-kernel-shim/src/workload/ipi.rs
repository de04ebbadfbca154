// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `ipi`: a CPU calls a function on other CPUs and waits until they have run it, as Linux's
//! IPI benchmark does. A sample lasts from before the call to its return; the stage `handler` ends
//! when the function begins.

use arch::gic_cpu;
use plan::{Shape, Workload};
use wait::request::CALL;

use crate::clock;
use crate::interrupts;
use crate::percpu::PerCpu;
use crate::setting::{Body, Idle};
use crate::tally::Event;
use crate::wake::Waker;
use crate::workload::call;
use crate::workload::preparation::Before;
use crate::workload::samples::{Samples, rounds, sample_begins, sample_ends};

/// The CPU that makes the calls and measures.
pub struct Caller<'s, B> {
    /// Which CPUs the caller interrupts.
    pub shape: Shape,
    /// Wakers of the CPUs that the caller calls.
    pub wakers: &'s [Waker],
    /// Number of calls that are samples.
    pub count: u32,
    /// Work before each call.
    pub before: B,
    /// Whether every target is interrupted, so that one broadcast serves all.
    pub at_once: bool,
    /// The memory for samples.
    pub samples: &'s mut Samples,
}

impl<B: Before> Caller<'_, B> {
    /// Makes the calls. `count` of them are samples.
    pub fn run(&mut self) {
        match self.shape {
            Shape::Dry => self.repeat_calls(|_, _| {}),
            Shape::Itself | Shape::One => {
                // The copy's fields are in registers. The list is in memory that other CPUs see, so its fields would be loaded each time.
                let waker = self.wakers[0];
                self.repeat_calls(|_, me| waker.wake(me));
            }
            Shape::Broadcast if self.at_once => self.repeat_calls(Self::broadcast),
            Shape::Broadcast => self.repeat_calls(|caller, me| {
                caller.wakers.iter().for_each(|waker| waker.wake(me));
            }),
        }
    }

    #[inline(always)]
    fn repeat_calls(&mut self, send: impl Fn(&Self, &PerCpu)) {
        let me = PerCpu::this();
        let targets = self.wakers.len() as u32;
        for (n, recorded) in (1..).zip(rounds(Workload::Ipi, self.count)) {
            if self.before.pause_ticks() != 0 {
                clock::pause(self.before.pause_ticks());
            }
            self.before.empty_caches();
            let start = sample_begins();
            send(self, me);
            let handler = call::wait_for_calls(n * targets);
            let ticks = sample_ends() - start;
            if !recorded {
                return;
            }
            self.samples.record(ticks);
            if targets != 0 {
                self.samples.handler.record(handler.saturating_sub(start));
            }
        }
    }

    /// Sends one interrupt to all other CPUs, after every request has been set.
    #[inline(always)]
    fn broadcast(&self, me: &PerCpu) {
        for waker in self.wakers {
            waker.set_request();
        }
        gic_cpu::send_sgi_to_others(interrupts::CALL);
        me.tally.add(Event::Sent);
    }
}

/// A CPU that is called.
pub struct Called;

impl Body for Called {
    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        // The last call also lets this CPU's task continue.
        loop {
            let taken = idle.wait(me);
            if taken & CALL != 0 {
                call::called_function(me);
            }
            if taken & !CALL != 0 {
                return;
            }
        }
    }
}
