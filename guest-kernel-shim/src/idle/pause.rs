// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the instructions with which a poll pauses between two checks.

use core::sync::atomic::Ordering::Relaxed;

use arch::insn;
use wait::poll::Pause;
use wait::request::Request;

/// An instruction with which a loop pauses.
pub trait Instruction {
    /// See [`Pause::PER_CLOCK`].
    const PER_CLOCK: u32;
    /// Whether the instruction has a deadline.
    const TIMED: bool = false;
    /// Whether the check has to arm the monitor on the request word.
    const ARMED: bool;
    /// See [`Pause::NEEDS_EVENT`].
    const NEEDS_EVENT: bool = false;

    /// Pauses; if the instruction has a deadline, at most until `deadline`.
    fn execute(&self, deadline: u64);
}

/// A pause that executes the instruction `I`.
pub struct By<I>(pub I);

impl<I: Instruction> Pause for By<I> {
    const PER_CLOCK: u32 = I::PER_CLOCK;
    const TIMED: bool = I::TIMED;
    const NEEDS_EVENT: bool = I::NEEDS_EVENT;

    #[inline(always)]
    fn look(&self, request: &Request) -> u32 {
        if I::ARMED {
            insn::load_exclusive(request.word())
        } else {
            request.word().load(Relaxed)
        }
    }

    #[inline(always)]
    fn pause(&self, deadline: u64) {
        self.0.execute(deadline);
    }
}

/// Does not pause, but checks again and again. This pause is only for machines whose CPUs run at the same time; see
/// [`Setting::hands_over`](crate::setting::Setting::hands_over).
pub struct Spin;

impl Instruction for Spin {
    const PER_CLOCK: u32 = 200;
    const ARMED: bool = false;

    #[inline(always)]
    fn execute(&self, _: u64) {}
}

/// Executes YIELD between two checks.
pub struct Yield;

impl Instruction for Yield {
    const PER_CLOCK: u32 = 200;
    const ARMED: bool = false;

    #[inline(always)]
    fn execute(&self, _: u64) {
        insn::yield_now();
    }
}

/// Executes WFE while the monitor is armed, so that a store to the word is an event; the event
/// stream bounds the wait. The YIELD is for emulators whose WFE does not wait on an armed monitor.
pub struct Wfe;

impl Instruction for Wfe {
    const PER_CLOCK: u32 = 1;
    const ARMED: bool = true;

    #[inline(always)]
    fn execute(&self, _: u64) {
        insn::wfe();
        insn::yield_now();
    }
}

/// Executes WFE without the monitor: the waker sends the event. An event between the check and the
/// WFE stays in the event register and ends the WFE at once.
pub struct WfeSev;

impl Instruction for WfeSev {
    const PER_CLOCK: u32 = 1;
    const ARMED: bool = false;
    const NEEDS_EVENT: bool = true;

    #[inline(always)]
    fn execute(&self, _: u64) {
        insn::wfe();
    }
}

/// Like [`Wfe`], but with the deadline in the instruction.
pub struct Wfet;

impl Instruction for Wfet {
    const PER_CLOCK: u32 = 1;
    const TIMED: bool = true;
    const ARMED: bool = true;

    #[inline(always)]
    fn execute(&self, deadline: u64) {
        insn::wfet(deadline);
        insn::yield_now();
    }
}
