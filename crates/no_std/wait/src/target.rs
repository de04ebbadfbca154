// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the operations that an idle loop needs from its CPU.
//!
//! The guest implements [`Target`] with its instructions; a model implements it with a simulated
//! machine. The loops of [`idle`](crate::idle) are compiled against either implementation, so the
//! checked loop is the loop that runs.

use crate::request::Request;

/// Returns the count `ticks` after `count`. The result saturates: a count beyond the
/// counter's range is then never reached, instead of being in the past. The loops of this crate add
/// directly instead: the plan bounds their limits to seconds (`poll-limit-us`), and additional
/// instructions would be part of the measurement.
#[must_use]
#[inline(always)]
pub const fn after(count: u64, ticks: u64) -> u64 {
    count.saturating_add(ticks)
}

/// Quantities that a loop counts with [`Target::count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Polls that reached their limit.
    PollTimeouts,
    /// Ticks by which polls exceeded their limit.
    Overshoot,
    /// Ticks spent polling.
    PollTicks,
    /// Pauses within polls, if the [`Pause`](crate::poll::Pause) counts them.
    Pauses,
    /// Halts that the CPU entered.
    Halts,
    /// Ticks spent halted.
    HaltTicks,
}

/// A CPU that waits for a request: the target of its wakers.
///
/// [`Request`] implements the operations on the request word. They are methods here, too, so that a
/// model can break one rule at a time; only models override them.
pub trait Target {
    /// Returns the CPU's request word.
    fn request(&self) -> &Request;

    /// Masks interrupts.
    fn mask_irq(&self);

    /// Unmasks interrupts.
    fn unmask_irq(&self);

    /// Halts until an interrupt is pending, masked or not. May return earlier.
    fn wfi(&self);

    /// Does nothing, except that it lets other CPUs run if several CPUs share a thread.
    fn yield_now(&self);

    /// Returns the time in ticks of a clock that never goes backwards.
    fn now(&self) -> u64;

    /// Whether the interrupt handler has set its flag since
    /// the last [`Target::clear_interrupted`].
    fn interrupted(&self) -> bool;

    /// Clears the flag of the interrupt handler.
    fn clear_interrupted(&self);

    /// Adds `many` to the count of a measure. By default, counts nothing.
    #[inline(always)]
    fn count(&self, _measure: Measure, _many: u64) {}

    /// Whether an interrupt came since the last call.
    #[inline(always)]
    fn take_interrupted(&self) -> bool {
        // Handler and loop run on one CPU, so plain accesses are enough. The flag is cleared only
        // after it was seen set: an unconditional clear would lose an interrupt that comes between
        // the check and the clear. If the flag was already set, the caller is about to act on it.
        let was = self.interrupted();
        if was {
            self.clear_interrupted();
        }
        was
    }

    /// Calls [`Request::pending`].
    #[inline(always)]
    fn pending(&self) -> u32 {
        self.request().pending()
    }

    /// Calls [`Request::start_polling`].
    #[inline(always)]
    fn start_polling(&self) -> u32 {
        self.request().start_polling()
    }

    /// Calls [`Request::stop_polling`].
    #[inline(always)]
    fn stop_polling(&self) -> u32 {
        self.request().stop_polling()
    }

    /// Calls [`Request::finish_polling`].
    #[inline(always)]
    fn finish_polling(&self, bits: u32) -> u32 {
        self.request().finish_polling(bits)
    }

    /// Calls [`Request::take`].
    #[inline(always)]
    fn take(&self, bits: u32) -> u32 {
        self.request().take(bits)
    }
}
