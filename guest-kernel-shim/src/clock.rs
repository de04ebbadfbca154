// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: the virtual count, which every CPU of the machine sees alike.

pub mod cycles;
pub mod watch;

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTVCT_EL0, Readable};
use arch::insn;
use spin::once::Once;

use crate::planted;

/// Returns the virtual count in ticks. The barrier keeps the read from being done early (DDI
/// 0487K.a, D13.2.1); it adds one instruction to each measurement.
#[inline(always)]
pub fn now() -> u64 {
    insn::isb();
    CNTVCT_EL0.get()
}

/// Frequency of the count, Hz.
pub fn frequency() -> u64 {
    CNTFRQ_EL0.get()
}

/// Converts microseconds to ticks.
pub fn ticks(microseconds: u32) -> u64 {
    (u128::from(microseconds) * u128::from(frequency()) / 1_000_000) as u64
}

/// Converts ticks to nanoseconds.
pub fn nanoseconds(ticks: u64) -> u64 {
    (u128::from(ticks) * 1_000_000_000 / u128::from(frequency())) as u64
}

/// Waits for `ticks`, letting an emulator run the other CPUs.
pub fn pause(ticks: u64) {
    let end = now() + ticks;
    while now() < end {
        insn::yield_now();
    }
}

/// Waits until `reached` holds, at most [`PATIENCE`] seconds, and returns whether it did.
pub fn wait_for(reached: impl Fn() -> bool) -> bool {
    wait_at_most(PATIENCE * frequency(), reached)
}

/// How long another CPU may take for something that it does at once, in seconds. If CPUs are threads of a busy host,
/// a CPU may get no time for that long while the others go on.
const PATIENCE: u64 = 60;

/// Waits until `reached` holds, at most `limit` ticks, and returns whether it did.
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

/// Whether a tick is one instruction of the machine, and not a unit of time. If so, CPUs run one after another.
/// Determined once, by the first CPU before there are others.
pub fn counts_instructions() -> bool {
    /// Has the size of a pointer: two bytes would put the pointers that the linker packs after them
    /// out of reach of a plain load, including those of measured paths.
    #[repr(align(8))]
    struct Known(Once<bool>);
    static FOUND: Known = Known(Once::new());
    *FOUND.0.call_once(ticks_are_instructions)
}

/// Whether two loops whose lengths differ by a known number of instructions differ by as
/// many ticks: see [`fidelity::counts_instructions`].
fn ticks_are_instructions() -> bool {
    const SHORT: u64 = 1000;
    const LONG: u64 = 5000;
    /// Instructions of a round of [`rounds`].
    const PER_ROUND: u64 = 2;
    fidelity::counts_instructions((LONG - SHORT) * PER_ROUND, || {
        let short = rounds(SHORT);
        let long = rounds(LONG);
        long.wrapping_sub(short)
    })
}

/// Returns by how many ticks the count advances at a time, if it does; see
/// [`fidelity::counter_step`].
pub fn step() -> Option<u64> {
    insn::mask_irq();
    let step = fidelity::counter_step(|rounds| {
        insn::rounds(rounds);
        now() & !planted::hidden()
    });
    insn::unmask_irq();
    step
}

/// Ticks that `count` rounds of two instructions take; not inlined, so that both lengths are measured by the same
/// instructions.
#[inline(never)]
fn rounds(count: u64) -> u64 {
    let start = now();
    // SAFETY: counts a register down; no memory, no stack.
    unsafe {
        core::arch::asm!("2: subs {n}, {n}, #1", "b.ne 2b", n = inout(reg) count => _,
            options(nomem, nostack));
    }
    now() - start
}
