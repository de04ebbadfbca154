// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request word, through which other CPUs ask a CPU to leave its idle loop.
//!
//! Request bits and the polling flag share one word, because the two sides race. The waker
//! sets its request and learns in the same atomic operation whether the target was polling;
//! the target withdraws its promise to look and learns in the same atomic operation whether
//! a request came first. With two words, each side could miss the other's store (the
//! store-buffer pattern), and the target would sleep despite a request that nobody
//! announces.
//!
//! | target | waker |
//! |---|---|
//! | [`Request::start_polling`] | |
//! | looks at the word | [`Request::wake`]: POLLING was set, so no interrupt |
//! | [`Request::stop_polling`] finds the request, does not halt | |
//! | [`Request::take`] | |
//!
//! The interrupt must not overtake the request: the sender orders its stores before the interrupt
//! (`arch::gic_cpu::send_sgi_value` has the DSB).
//!
//! A target halts only after `stop_polling` found no request, with interrupts masked from before
//! that check until after the WFI: a waker that comes later finds POLLING clear and sends an
//! interrupt, which ends the WFI.

#[cfg(loom)]
use loom::sync::atomic::AtomicU32;

#[cfg(not(loom))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

/// The target has promised to look at the word.
pub const POLLING: u32 = 1 << 0;
/// There is a task to run.
pub const RESCHED: u32 = 1 << 1;
/// There is a function to call.
pub const CALL: u32 = 1 << 2;
/// Every request bit.
pub const REQUESTS: u32 = RESCHED | CALL;

/// A waker's duty after it has set its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Send the interrupt.
    Send,
    /// Nothing: the target polls and will see the request.
    Elided,
    /// Nothing: this request was already pending, and the waker that set it notifies the
    /// target.
    Coalesced,
}

/// The request word of one CPU, on its own cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Request(AtomicU32);

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}

impl Request {
    /// Creates a word without requests; its target does not poll.
    #[must_use]
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Creates a word without requests; its target does not poll.
    #[must_use]
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Returns the word itself, for the instruction that arms the monitor on it.
    #[must_use]
    #[inline(always)]
    pub const fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// For the waker: adds request `bit`. If `elide` is set and the target polls, no interrupt is needed.
    /// All earlier stores are visible to the target once it has taken the request.
    #[inline(always)]
    pub fn wake(&self, bit: u32, elide: bool) -> Notice {
        let old = self.0.fetch_or(bit, AcqRel);
        if old & bit != 0 {
            Notice::Coalesced
        } else if elide && old & POLLING != 0 {
            Notice::Elided
        } else {
            Notice::Send
        }
    }

    /// For the waker of a request that goes through the word only if the target polls: adds request
    /// `bit` if the target polls, and returns whether it does. Otherwise, the word is unchanged,
    /// and the caller sends an interrupt whose handler does not need the bit.
    #[must_use]
    #[inline(always)]
    pub fn wake_polling(&self, bit: u32) -> bool {
        // Not a plain `or`: the bit must not be set unless the target looks. Uses AcqRel like
        // `wake`. After a failure, the caller sends an interrupt, which provides the ordering.
        let add = |word| (word & POLLING != 0).then_some(word | bit);
        self.0.fetch_update(AcqRel, Acquire, add).is_ok()
    }

    /// For the target: returns the pending requests.
    #[must_use]
    #[inline(always)]
    pub fn pending(&self) -> u32 {
        self.0.load(Acquire) & REQUESTS
    }

    /// Promises to look at the word; returns the requests that were already pending.
    #[inline(always)]
    pub fn start_polling(&self) -> u32 {
        self.0.fetch_or(POLLING, AcqRel) & REQUESTS
    }

    /// Withdraws the promise; returns the requests that came before the withdrawal.
    #[inline(always)]
    pub fn stop_polling(&self) -> u32 {
        self.0.fetch_and(!POLLING, AcqRel) & REQUESTS
    }

    /// Withdraws the promise, and takes and returns the requests in `bits`, in one operation.
    #[inline(always)]
    pub fn finish_polling(&self, bits: u32) -> u32 {
        self.0.fetch_and(!(bits | POLLING), AcqRel) & bits
    }

    /// Takes and returns the requests in `bits`, which the caller must serve.
    #[inline(always)]
    pub fn take(&self, bits: u32) -> u32 {
        self.0.fetch_and(!bits, AcqRel) & bits
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_waker_sends_unless_the_target_polls() {
        let request = Request::new();
        assert_eq!(request.wake(RESCHED, true), Notice::Send);
        assert_eq!(request.wake(RESCHED, true), Notice::Coalesced);
        assert_eq!(request.take(REQUESTS), RESCHED);
        assert_eq!(request.start_polling(), 0);
        assert_eq!(request.wake(CALL, true), Notice::Elided);
        assert_eq!(request.wake(RESCHED, false), Notice::Send);
        assert_eq!(request.stop_polling(), RESCHED | CALL);
        assert_eq!(request.take(CALL), CALL);
        assert_eq!(request.pending(), RESCHED);
    }

    #[test]
    fn only_a_target_that_polls_is_told_by_the_word_alone() {
        let request = Request::new();
        assert!(!request.wake_polling(CALL));
        assert_eq!((request.pending(), request.start_polling()), (0, 0));
        assert!(request.wake_polling(CALL) && request.wake_polling(CALL));
        assert_eq!(request.stop_polling(), CALL);
        assert!(!request.wake_polling(RESCHED));
        assert_eq!(request.take(REQUESTS), CALL);
    }
}
