// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counter of the machine, as user space reads it.

use std::arch::asm;

/// The count. The ISB keeps the read from being made early (DDI 0487K.a, D11.2.2: reads of the
/// counter are not ordered otherwise).
#[inline(always)]
pub fn now() -> u64 {
    let count;
    // SAFETY: Linux lets EL0 read it (CNTKCTL_EL1.EL0VCTEN), and it changes nothing.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack)) };
    count
}

/// Its frequency, Hz.
pub fn frequency() -> u64 {
    let hertz;
    // SAFETY: EL0 may read it where it may read the count.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack)) };
    hertz
}

/// Whether a tick is an instruction of the machine, and not a time.
pub fn counts_instructions() -> bool {
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

/// Ticks that `count` rounds of two instructions take; not inlined, so that both lengths are
/// measured by the same instructions.
#[inline(never)]
fn rounds(count: u64) -> u64 {
    let start = now();
    // SAFETY: it counts a register down.
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
