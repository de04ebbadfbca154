// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle loops: ways in which a CPU waits for a request.
//!
//! Each way is a loop over the same four steps: promise to look (set POLLING), look and pause,
//! withdraw the promise, halt. [`Poll`] takes only the first three, [`Halt`] only the last, and
//! [`PollHalt`] and [`Haltpoll`] all four. A [`Pause`] determines how a poll pauses.
//!
//! Polls run with interrupts unmasked: a masked interrupt does not wake a WFE (DDI 0487K.a,
//! D1.7.1), and its handler would have to wait for the end of the poll. Before a halt, a CPU masks interrupts
//! and checks that the word shows no request; a pending interrupt ends the halt, masked or not; see
//! [`request`](crate::request).
//!
//! The loops are generic over the CPU, a [`Target`], so that `tests/wakeup` model-checks the loops
//! that the guest runs.

mod step;

pub use step::{halt, halt_unless, poll_for, poll_while, relax_while, wfi};

use crate::governor::{Guest, Tunables};
use crate::poll::{self, Pause};
use crate::target::{Measure, Target};

/// A way in which a CPU of type `T` waits.
pub trait Idle<T> {
    /// Waits for a wanted request, takes it and returns its bits.
    fn wait(&mut self, cpu: &T) -> u32;

    /// Whether a waker that omits the interrupt must send an event instead. The type determines
    /// this, so a waker needs no run-time test.
    #[inline(always)]
    fn needs_event(&self) -> bool {
        false
    }
}

/// Does not idle: does other work, here almost none, and checks the flag that its own interrupt
/// handler sets.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// Request bits that end the wait.
    pub wanted: u32,
}

impl<T: Target> Idle<T> for Busy {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        loop {
            if cpu.take_interrupted() {
                let taken = cpu.take(self.wanted);
                if taken != 0 {
                    return taken;
                }
            }
            cpu.yield_now();
        }
    }
}

/// Polls without a limit; every pause with a deadline returns by itself within `bound` ticks.
#[derive(Clone, Copy, Debug)]
pub struct Poll<P> {
    /// How the loop pauses.
    pub pause: P,
    /// Request bits that end the wait.
    pub wanted: u32,
    /// Ticks after which a pause with a deadline returns.
    pub bound: u64,
    /// Whether to count the time spent polling.
    pub timed: bool,
}

impl<T: Target, P: Pause> Idle<T> for Poll<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        let start = if self.timed { cpu.now() } else { 0 };
        cpu.start_polling();
        poll::forever(cpu, &self.pause, self.wanted, self.bound);
        let taken = cpu.finish_polling(self.wanted);
        if self.timed {
            cpu.count(Measure::PollTicks, cpu.now() - start);
            cpu.count(Measure::Pauses, self.pause.take_pauses());
        }
        taken
    }

    #[inline(always)]
    fn needs_event(&self) -> bool {
        P::NEEDS_EVENT
    }
}

/// Polls up to a limit and never halts, so the wait may end without a request.
#[derive(Clone, Copy, Debug)]
pub struct Limited<P> {
    /// How the loop pauses.
    pub pause: P,
    /// Request bits that end the wait.
    pub wanted: u32,
    /// Poll limit in ticks.
    pub limit: u64,
}

impl<T: Target, P: Pause> Idle<T> for Limited<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        match poll_for(cpu, &self.pause, self.wanted, self.limit, false) {
            0 => cpu.finish_polling(self.wanted),
            taken => taken,
        }
    }
}

/// Halts without polling.
#[derive(Clone, Copy, Debug)]
pub struct Halt {
    /// Request bits that end the wait.
    pub wanted: u32,
    /// Whether to count the time spent halted.
    pub timed: bool,
}

impl<T: Target> Idle<T> for Halt {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        loop {
            cpu.mask_irq();
            if cpu.pending() & self.wanted == 0 {
                wfi(cpu, self.timed);
            }
            cpu.unmask_irq();
            let taken = cpu.take(self.wanted);
            if taken != 0 {
                return taken;
            }
        }
    }
}

/// Polls up to a limit, then halts: the two states of `arm_poll_idle` (H. Okanovic,
/// 2024).
#[derive(Clone, Copy, Debug)]
pub struct PollHalt<P> {
    /// How the loop pauses.
    pub pause: P,
    /// Request bits that end the wait.
    pub wanted: u32,
    /// Poll limit in ticks.
    pub limit: u64,
    /// Whether to count the time spent polling and halted.
    pub timed: bool,
}

impl<T: Target, P: Pause> Idle<T> for PollHalt<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        loop {
            let mut taken = poll_for(cpu, &self.pause, self.wanted, self.limit, self.timed);
            if taken == 0 {
                taken = halt(cpu, self.wanted, self.timed);
            }
            if taken != 0 {
                return taken;
            }
        }
    }
}

/// Like [`PollHalt`], but the governor [`Guest`] sets the limit.
#[derive(Clone, Copy, Debug)]
pub struct Haltpoll<P> {
    pause: P,
    wanted: u32,
    governor: Guest,
    timed: bool,
}

impl<P: Pause> Haltpoll<P> {
    /// Starts with limit 0, so the first wait halts. The times of `tunables` are in ticks.
    pub const fn new(pause: P, wanted: u32, tunables: Tunables, timed: bool) -> Self {
        Self {
            pause,
            wanted,
            governor: Guest::new(tunables),
            timed,
        }
    }
}

impl<T: Target, P: Pause> Idle<T> for Haltpoll<P> {
    #[inline(always)]
    fn wait(&mut self, cpu: &T) -> u32 {
        loop {
            let limit = self.governor.limit();
            if limit != 0 {
                let taken = poll_for(cpu, &self.pause, self.wanted, limit, self.timed);
                self.governor.polled(taken != 0);
                if taken != 0 {
                    return taken;
                }
            }
            let start = cpu.now();
            let taken = halt(cpu, self.wanted, self.timed);
            self.governor.halted(cpu.now() - start);
            if taken != 0 {
                return taken;
            }
        }
    }
}
