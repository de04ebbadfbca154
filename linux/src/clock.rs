// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the machine's counter from user space.

use std::arch::asm;

use rustix::time::{ClockId, clock_getres};

/// Reads the counter. The ISB keeps the read from happening early, since reads of the counter
/// are not ordered otherwise (DDI 0487K.a, D11.2.2).
#[inline(always)]
pub fn now() -> u64 {
    let count;
    // SAFETY: Linux lets EL0 read the counter (CNTKCTL_EL1.EL0VCTEN), and the read changes nothing.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack)) };
    count
}

/// Returns the counter's frequency in Hz.
pub fn frequency() -> u64 {
    let hertz;
    // SAFETY: EL0 may read the frequency where it may read the count.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack)) };
    hertz
}

/// Returns the number of the kernel's ticks per second (CONFIG_HZ). The kernel's coarse clock advances by one tick at a
/// time.
pub fn tick_hz() -> Option<u64> {
    let step = clock_getres(ClockId::MonotonicCoarse);
    let ns = u64::try_from(step.tv_nsec).ok().filter(|&ns| ns > 0)?;
    Some(1_000_000_000 / ns)
}

/// Returns whether the counter counts instructions of the machine rather than time.
pub fn counts_instructions() -> bool {
    const SHORT: u64 = 1000;
    const LONG: u64 = 5000;
    /// Instructions in one round of [`time_rounds`].
    const PER_ROUND: u64 = 2;
    fidelity::counts_instructions((LONG - SHORT) * PER_ROUND, || {
        let short = time_rounds(SHORT);
        let long = time_rounds(LONG);
        long.wrapping_sub(short)
    })
}

/// Returns the ticks that `count` rounds of two instructions take. The function is not inlined, so that the same
/// instructions measure both counts.
#[inline(never)]
fn time_rounds(count: u64) -> u64 {
    let start = now();
    // SAFETY: the code only counts down a register.
    unsafe {
        asm!(
            "2: subs {0}, {0}, #1",
            "b.ne 2b",
            inout(reg) count => _,
            options(nomem, nostack)
        );
    }
    now() - start
}
