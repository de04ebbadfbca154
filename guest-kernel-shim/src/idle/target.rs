// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's CPU for the idle loops of crate `wait`.

use core::sync::atomic::Ordering::Relaxed;

use arch::insn;
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
