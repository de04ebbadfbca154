// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timed conditional wait: the CPU looks at a word until the word shows a wanted bit or an
//! absolute deadline has passed.
//!
//! The wait has the form of the timed conditional load proposed for Linux
//! (`smp_cond_load_relaxed_timeout`, A. Arora, 2025): look, pause with the best available
//! instruction, read the clock only now and then, and look a last time after the deadline, so as
//! not to miss a request that arrived while the clock was read.

use core::cell::Cell;

use crate::request::Request;
use crate::target::Target;

/// How a CPU looks at its request word, and how it pauses between two looks.
pub trait Pause {
    /// Number of pauses between two readings of the clock. One is enough for an instruction that
    /// waits by itself; YIELD takes 20 to 30 cycles, about as long as reading the clock.
    const PER_CLOCK: u32;
    /// Whether the pause uses its deadline.
    const TIMED: bool = false;
    /// Whether only an event ends the pause, so that a waker that omits the interrupt must send an
    /// event.
    const NEEDS_EVENT: bool = false;

    /// Reads the request word. If the pause relies on the monitor, this read is an exclusive load
    /// that arms the monitor.
    fn look(&self, request: &Request) -> u32;

    /// Waits a little, until the word may have changed or `deadline` has passed. May return at any
    /// time, and must return in bounded time.
    fn pause(&self, deadline: u64);

    /// Returns the number of pauses since the last call, if they are counted.
    fn take_pauses(&self) -> u64 {
        0
    }
}

/// Wraps another way to pause, and counts its pauses.
#[derive(Debug, Default)]
pub struct Counted<P> {
    inner: P,
    pauses: Cell<u64>,
}

impl<P> Counted<P> {
    /// Wraps `inner` with a count of 0.
    pub const fn new(inner: P) -> Self {
        Self {
            inner,
            pauses: Cell::new(0),
        }
    }
}

impl<P: Pause> Pause for Counted<P> {
    const PER_CLOCK: u32 = P::PER_CLOCK;
    const TIMED: bool = P::TIMED;
    const NEEDS_EVENT: bool = P::NEEDS_EVENT;

    fn look(&self, request: &Request) -> u32 {
        self.inner.look(request)
    }

    fn pause(&self, deadline: u64) {
        self.pauses.set(self.pauses.get() + 1);
        self.inner.pause(deadline);
    }

    fn take_pauses(&self) -> u64 {
        self.pauses.take()
    }
}

/// Waits until the request word of `cpu` shows any of the `wanted` bits and returns those bits,
/// or until the clock has reached `deadline`, in ticks, and returns 0.
#[inline(always)]
pub fn until<T: Target, P: Pause>(cpu: &T, pause: &P, wanted: u32, deadline: u64) -> u32 {
    loop {
        for _ in 0..P::PER_CLOCK {
            let seen = pause.look(cpu.request()) & wanted;
            if seen != 0 {
                return seen;
            }
            pause.pause(deadline);
        }
        if cpu.now() >= deadline {
            return cpu.pending() & wanted;
        }
    }
}

/// Waits without a limit until the request word of `cpu` shows any of the `wanted` bits, and
/// returns those bits. Reads the clock only for a pause that uses a deadline: the deadline is then
/// `bound` ticks ahead.
#[inline(always)]
pub fn forever<T: Target, P: Pause>(cpu: &T, pause: &P, wanted: u32, bound: u64) -> u32 {
    loop {
        let seen = pause.look(cpu.request()) & wanted;
        if seen != 0 {
            return seen;
        }
        pause.pause(if P::TIMED { cpu.now() + bound } else { 0 });
    }
}
