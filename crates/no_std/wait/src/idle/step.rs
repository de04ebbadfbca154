// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loops' steps: one poll, one halt.

use crate::poll::{self, Pause};
use crate::target::{Measure, Target};

/// Executes WFI and counts the halt, and also its time if `timed`.
#[inline(always)]
pub fn wfi<T: Target>(cpu: &T, timed: bool) {
    let start = if timed { cpu.now() } else { 0 };
    cpu.wfi();
    if timed {
        cpu.count(Measure::HaltTicks, cpu.now() - start);
    }
    cpu.count(Measure::Halts, 1);
}

/// Polls for `limit` ticks; returns the requests that it found and took, or 0. After a poll that
/// returns 0, the CPU's promise to look still holds: the next step withdraws it in the same operation
/// that checks for requests before a halt.
#[inline(always)]
pub fn poll_for<T: Target, P: Pause>(
    cpu: &T,
    pause: &P,
    wanted: u32,
    limit: u64,
    timed: bool,
) -> u32 {
    let deadline = cpu.now() + limit;
    cpu.start_polling();
    if poll::until(cpu, pause, wanted, deadline) != 0 {
        let taken = cpu.finish_polling(wanted);
        if timed {
            let ticks = cpu.now() - (deadline - limit);
            cpu.count(Measure::PollTicks, ticks);
            cpu.count(Measure::Pauses, pause.take_pauses());
        }
        return taken;
    }
    let over = cpu.now().saturating_sub(deadline);
    cpu.count(Measure::PollTimeouts, 1);
    cpu.count(Measure::Overshoot, over);
    cpu.count(Measure::PollTicks, limit + over);
    cpu.count(Measure::Pauses, pause.take_pauses());
    0
}

/// Polls until there is a request, or until `on` returns false; calls `on` every `period`
/// ticks. Takes and returns the requests.
#[inline(always)]
pub fn poll_while<T: Target, P: Pause>(
    cpu: &T,
    pause: &P,
    wanted: u32,
    period: u64,
    on: impl Fn() -> bool,
) -> u32 {
    cpu.start_polling();
    loop {
        let deadline = cpu.now() + period;
        if poll::until(cpu, pause, wanted, deadline) != 0 || !on() {
            break;
        }
    }
    cpu.finish_polling(wanted)
}

/// Polls with nothing but YIELD until there is a request, or until `on` returns false; checks both
/// between any two YIELDs. Takes and returns the requests.
#[inline(always)]
pub fn relax_while<T: Target>(cpu: &T, wanted: u32, on: impl Fn() -> bool) -> u32 {
    cpu.start_polling();
    while cpu.pending() & wanted == 0 && on() {
        cpu.yield_now();
    }
    cpu.finish_polling(wanted)
}

/// Halts unless a request came before the promise to look was withdrawn; takes and returns the
/// requests that have arrived by the end.
#[inline(always)]
pub fn halt<T: Target>(cpu: &T, wanted: u32, timed: bool) -> u32 {
    halt_unless(cpu, wanted, || false, || wfi(cpu, timed)).0
}

/// Halts by calling `sleep` unless a request came before the promise to look was withdrawn, or
/// `happened` reports an interrupt; takes and returns the requests that have arrived by the end,
/// and whether the CPU slept.
///
/// `happened` is for interrupts that set no request and don't come twice. Like the word, it is
/// checked with interrupts masked, so that a later interrupt stays pending and ends the sleep.
#[inline(always)]
pub fn halt_unless<T: Target>(
    cpu: &T,
    wanted: u32,
    happened: impl FnOnce() -> bool,
    sleep: impl FnOnce(),
) -> (u32, bool) {
    cpu.mask_irq();
    let requested = cpu.stop_polling() & wanted != 0;
    let sleeps = !requested && !happened();
    if sleeps {
        sleep();
    }
    cpu.unmask_irq();
    (cpu.take(wanted), sleeps)
}
