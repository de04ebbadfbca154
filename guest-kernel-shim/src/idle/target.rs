// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's CPU for the idle loops of crate `wait`.

use core::sync::atomic::Ordering::Relaxed;

use arch::insn;
use wait::idle::Idle;
use wait::request::Request;
use wait::target::{Measure, Target};

use crate::clock;
use crate::percpu::PerCpu;
use crate::tally::Event;

impl Target for PerCpu {
    #[inline(always)]
    fn request(&self) -> &Request {
        &self.request
    }

    #[inline(always)]
    fn mask_irq(&self) {
        insn::mask_irq();
    }

    #[inline(always)]
    fn unmask_irq(&self) {
        insn::unmask_irq();
    }

    #[inline(always)]
    fn wfi(&self) {
        insn::wfi();
    }

    #[inline(always)]
    fn yield_now(&self) {
        insn::yield_now();
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    #[inline(always)]
    fn clear_interrupted(&self) {
        self.interrupted.store(false, Relaxed);
    }

    #[inline(always)]
    fn count(&self, measure: Measure, many: u64) {
        let event = match measure {
            Measure::PollTimeouts => Event::PollTimeout,
            Measure::Overshoot => Event::Overshoot,
            Measure::PollTicks => Event::PollTicks,
            Measure::Pauses => Event::Pauses,
            Measure::Halts => Event::Halted,
            Measure::HaltTicks => Event::HaltTicks,
        };
        self.tally.add_many(event, many);
    }
}

/// The same CPU, with a DSB before each WFI.
pub struct Barred<'c>(pub &'c PerCpu);

impl Target for Barred<'_> {
    #[inline(always)]
    fn request(&self) -> &Request {
        self.0.request()
    }

    #[inline(always)]
    fn mask_irq(&self) {
        self.0.mask_irq();
    }

    #[inline(always)]
    fn unmask_irq(&self) {
        self.0.unmask_irq();
    }

    #[inline(always)]
    fn wfi(&self) {
        insn::dsb_sy();
        self.0.wfi();
    }

    #[inline(always)]
    fn yield_now(&self) {
        self.0.yield_now();
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.0.now()
    }

    #[inline(always)]
    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }

    #[inline(always)]
    fn clear_interrupted(&self) {
        self.0.clear_interrupted();
    }

    #[inline(always)]
    fn count(&self, measure: Measure, many: u64) {
        self.0.count(measure, many);
    }
}

/// An idle loop on such a CPU.
pub struct BehindBarrier<I>(pub I);

impl<I: for<'c> Idle<Barred<'c>>> Idle<PerCpu> for BehindBarrier<I> {
    #[inline(always)]
    fn wait(&mut self, cpu: &PerCpu) -> u32 {
        self.0.wait(&Barred(cpu))
    }
}
