// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timed conditional wait: look at a word until it shows a wanted bit or an
//! absolute deadline has passed.
//!
//! The shape is that of the timed conditional load proposed for Linux
//! (`smp_cond_load_relaxed_timeout`, A. Arora, 2025): look, pause by the best
//! instruction there is, read the clock only now and then, and look a last
//! time after the deadline, so that a request that came while the clock was
//! read is not missed.

use core::cell::Cell;

use crate::request::Request;

/// How a CPU looks and pauses.
pub trait Pause {
    /// Pauses between two readings of the clock. An instruction that waits
    /// by itself needs one; YIELD takes 20 to 30 cycles, and reading the clock
    /// about as much.
    const PER_CLOCK: u32;
    /// The pause uses its deadline.
    const TIMED: bool = false;

    /// The request word; where the pause relies on the monitor, an exclusive
    /// load that arms it.
    fn look(&self, request: &Request) -> u32;

    /// Waits a little, until the word may have changed or `deadline` has
    /// passed. May return at any time, must return in bounded time.
    fn pause(&self, deadline: u64);

    /// The virtual count, ticks.
    fn now(&self) -> u64;

    /// Pauses since the last call, if they are counted.
    fn take_pauses(&self) -> u64 {
        0
    }
}

/// Counts the pauses of another way to pause.
#[derive(Debug, Default)]
pub struct Counted<P> {
    inner: P,
    pauses: Cell<u64>,
}

impl<P> Counted<P> {
    /// Counts the pauses of `inner`.
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

    fn look(&self, request: &Request) -> u32 {
        self.inner.look(request)
    }

    fn pause(&self, deadline: u64) {
        self.pauses.set(self.pauses.get() + 1);
        self.inner.pause(deadline);
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }

    fn take_pauses(&self) -> u64 {
        self.pauses.take()
    }
}

/// Waits until `request` shows one of the bits `wanted`, which are answered, or
/// the count has reached `deadline`, in ticks: then 0.
#[inline(always)]
pub fn until<P: Pause>(cpu: &P, request: &Request, wanted: u32, deadline: u64) -> u32 {
    loop {
        for _ in 0..P::PER_CLOCK {
            let seen = cpu.look(request) & wanted;
            if seen != 0 {
                return seen;
            }
            cpu.pause(deadline);
        }
        if cpu.now() >= deadline {
            return request.pending() & wanted;
        }
    }
}

/// Waits without a limit until `request` shows one of the bits `wanted`, which
/// are answered. No clock is read, but for the deadline of a pause that has
/// one: `bound` ticks ahead.
#[inline(always)]
pub fn forever<P: Pause>(cpu: &P, request: &Request, wanted: u32, bound: u64) -> u32 {
    loop {
        let seen = cpu.look(request) & wanted;
        if seen != 0 {
            return seen;
        }
        cpu.pause(if P::TIMED { cpu.now() + bound } else { 0 });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::request::RESCHED;

    /// A clock that advances by `step` when looked at; `at` is when the request
    /// appears.
    struct Fake<'r> {
        time: Cell<u64>,
        at: u64,
        request: &'r Request,
    }

    impl Pause for Fake<'_> {
        const PER_CLOCK: u32 = 3;
        const TIMED: bool = true;
        fn look(&self, request: &Request) -> u32 {
            request.pending()
        }
        fn pause(&self, _: u64) {
            self.time.set(self.time.get() + 1);
        }
        fn now(&self) -> u64 {
            // The request comes while the clock is read: the worst moment.
            if self.time.get() >= self.at {
                self.request.wake(RESCHED, true);
            }
            self.time.get()
        }
    }

    fn run(at: u64, deadline: u64) -> (u32, u64) {
        let request = Request::new();
        let fake = Fake {
            time: Cell::new(0),
            at,
            request: &request,
        };
        (until(&fake, &request, RESCHED, deadline), fake.time.get())
    }

    #[test]
    fn a_request_ends_the_wait() {
        assert_eq!(run(10, 100).0, RESCHED);
    }

    #[test]
    fn without_a_limit_only_a_request_ends_the_wait() {
        let request = Request::new();
        let fake = Fake {
            time: Cell::new(0),
            at: 1000,
            request: &request,
        };
        assert_eq!(forever(&fake, &request, RESCHED, 5), RESCHED);
        assert!(fake.time.get() >= 1000);
    }

    #[test]
    fn the_deadline_ends_the_wait() {
        let (seen, time) = run(u64::MAX, 100);
        assert_eq!(seen, 0);
        assert!((100..104).contains(&time));
    }

    #[test]
    fn a_request_at_the_deadline_is_seen() {
        assert_eq!(run(100, 100).0, RESCHED);
    }
}
