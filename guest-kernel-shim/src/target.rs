// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes this machine's CPU a target for the idle loops of crate `wait`.

use core::sync::atomic::Ordering::Relaxed;

use abi::TimeLog;
use arch::insn;
use parts::Guest;
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
        // Usually the waker has just written to this word on another core. The prefetch fetches the word's cache line
        // while the CPU takes the interrupt.
        insn::prefetch_to_write(&self.request);
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

/// A CPU that executes a DSB before each WFI.
pub struct Barred<'c, T>(pub &'c T);

impl<T: Target> Target for Barred<'_, T> {
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

/// An idle loop on a CPU that executes a DSB before each WFI.
pub struct BehindBarrier<I>(pub I);

impl<T: Target, I: for<'c> Idle<Barred<'c, T>>> Idle<T> for BehindBarrier<I> {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        self.0.wait(&Barred(cpu))
    }
}

/// A CPU that notes when it begins and stops polling and halting: see crate `parts`.
pub struct Noting {
    cpu: &'static PerCpu,
    log: &'static TimeLog,
}

impl Noting {
    /// Wraps `cpu`, with its log in `log`.
    pub fn new(cpu: &'static PerCpu, log: &'static TimeLog) -> Self {
        Self { cpu, log }
    }

    /// Logs that the CPU does `what` from now on.
    pub fn log_state(&self, what: Guest) {
        self.log.note(clock::now(), what as u64);
    }
}

impl Target for Noting {
    #[inline(always)]
    fn request(&self) -> &Request {
        self.cpu.request()
    }

    #[inline(always)]
    fn mask_irq(&self) {
        self.cpu.mask_irq();
    }

    #[inline(always)]
    fn unmask_irq(&self) {
        self.cpu.unmask_irq();
    }

    #[inline(always)]
    fn wfi(&self) {
        self.log_halt(|| self.cpu.wfi());
    }

    #[inline(always)]
    fn yield_now(&self) {
        self.cpu.yield_now();
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.cpu.now()
    }

    #[inline(always)]
    fn interrupted(&self) -> bool {
        self.cpu.interrupted()
    }

    #[inline(always)]
    fn clear_interrupted(&self) {
        self.cpu.clear_interrupted();
    }

    #[inline(always)]
    fn count(&self, measure: Measure, many: u64) {
        self.cpu.count(measure, many);
    }

    #[inline(always)]
    fn start_polling(&self) -> u32 {
        self.log_state(Guest::Poll);
        self.cpu.start_polling()
    }

    #[inline(always)]
    fn stop_polling(&self) -> u32 {
        let there = self.cpu.stop_polling();
        self.log_state(Guest::Run);
        there
    }

    #[inline(always)]
    fn finish_polling(&self, bits: u32) -> u32 {
        let taken = self.cpu.finish_polling(bits);
        self.log_state(Guest::Run);
        taken
    }
}

/// A CPU of this machine, with or without logging.
pub trait Here: Target {
    /// Returns the CPU's state.
    fn cpu(&self) -> &PerCpu;

    /// Runs `sleep`, a wait that executes no WFI in this kernel, and logs it as a halt if the CPU logs its halts.
    fn log_halt(&self, sleep: impl FnOnce());
}

impl Here for PerCpu {
    #[inline(always)]
    fn cpu(&self) -> &PerCpu {
        self
    }

    #[inline(always)]
    fn log_halt(&self, sleep: impl FnOnce()) {
        sleep();
    }
}

impl Here for Noting {
    #[inline(always)]
    fn cpu(&self) -> &PerCpu {
        self.cpu
    }

    #[inline(always)]
    fn log_halt(&self, sleep: impl FnOnce()) {
        self.log_state(Guest::Wfi);
        sleep();
        self.log_state(Guest::Run);
    }
}
