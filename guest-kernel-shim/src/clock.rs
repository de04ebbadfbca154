// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads time as the virtual count, which is the same for every CPU of the machine.

pub mod cycles;
pub mod watch;

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTVCT_EL0, Readable};
use arch::insn;
use spin::once::Once;

use crate::planted;

/// Returns the virtual count in ticks. The barrier keeps the read from being done early (DDI
/// 0487K.a, D13.2.1); that adds one instruction to each measurement.
#[inline(always)]
pub fn now() -> u64 {
    insn::isb();
    CNTVCT_EL0.get()
}

/// Returns the frequency of the count, in Hz.
pub fn frequency() -> u64 {
    CNTFRQ_EL0.get()
}

/// Converts microseconds to ticks.
pub fn us_to_ticks(microseconds: u32) -> u64 {
    (u128::from(microseconds) * u128::from(frequency()) / 1_000_000) as u64
}

/// Converts ticks to nanoseconds.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    (u128::from(ticks) * 1_000_000_000 / u128::from(frequency())) as u64
}

/// Waits for `ticks`, and lets an emulator run the other CPUs meanwhile.
pub fn pause(ticks: u64) {
    let end = now() + ticks;
    while now() < end {
        insn::yield_now();
    }
}

/// Waits until `reached` returns true, for at most [`PATIENCE`] seconds; returns whether it did.
pub fn wait_for(reached: impl Fn() -> bool) -> bool {
    wait_at_most(PATIENCE * frequency(), reached)
}

/// Time limit, in seconds, for an action that another CPU does without waiting. If CPUs are threads of a busy host, a
/// CPU may get no time for that long while the other CPUs run.
const PATIENCE: u64 = 60;

/// Waits until `reached` returns true, for at most `limit` ticks; returns whether it did.
pub fn wait_at_most(limit: u64, reached: impl Fn() -> bool) -> bool {
    let end = now() + limit;
    while !reached() {
        if now() > end {
            return false;
        }
        insn::yield_now();
    }
    true
}

/// Whether a tick is one instruction of the machine, and not a unit of time. If so, CPUs run one
/// after another. The first CPU determines this once, before it starts the other CPUs.
pub fn counts_instructions() -> bool {
    /// The type has the size of a pointer. If it had two bytes, the linker would pack pointers right
    /// after it, where plain loads could not reach them; measured paths use some of these pointers.
    #[repr(align(8))]
    struct Known(Once<bool>);
    static FOUND: Known = Known(Once::new());
    *FOUND.0.call_once(ticks_are_instructions)
}

/// Whether two loops differ in time by as many ticks as they differ in instructions: see
/// [`fidelity::counts_instructions`].
fn ticks_are_instructions() -> bool {
    const SHORT: u64 = 1000;
    const LONG: u64 = 5000;
    /// Number of instructions in a round of [`time_rounds`].
    const PER_ROUND: u64 = 2;
    fidelity::counts_instructions((LONG - SHORT) * PER_ROUND, || {
        let short = time_rounds(SHORT);
        let long = time_rounds(LONG);
        long.wrapping_sub(short)
    })
}

/// Returns the number of ticks by which the count advances at a time, if it advances; see
/// [`fidelity::counter_step`].
pub fn counter_step() -> Option<u64> {
    insn::mask_irq();
    let step = fidelity::counter_step(|rounds| {
        insn::rounds(rounds);
        now() & !planted::hidden_bits()
    });
    insn::unmask_irq();
    step
}

/// Returns the ticks that `count` rounds of two instructions take. The function is not inlined, so that the same
/// instructions measure both lengths.
#[inline(never)]
fn time_rounds(count: u64) -> u64 {
    let start = now();
    // SAFETY: the loop counts a register down, and uses neither memory nor stack.
    unsafe {
        core::arch::asm!("2: subs {n}, {n}, #1", "b.ne 2b", n = inout(reg) count => _,
            options(nomem, nostack));
    }
    now() - start
}
