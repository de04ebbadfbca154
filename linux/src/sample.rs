// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock reads of samples, with marks by which a plugin of the emulator finds them: crate `cost`. A mark changes
//! nothing, and no sample contains one.

use std::arch::asm;

use cost::SampleMark;

/// Reads the counter at the beginning of a sample, as [`clock::now`](crate::clock::now) does.
#[inline(always)]
pub fn begins() -> u64 {
    let count;
    // SAFETY: Linux lets EL0 read it (CNTKCTL_EL1.EL0VCTEN); the mark writes to the zero register.
    unsafe {
        asm!(
            "movz xzr, #{mark}",
            "isb",
            "mrs {count}, cntvct_el0",
            mark = const SampleMark::Begin.immediate(),
            count = out(reg) count,
            options(nostack)
        );
    }
    count
}

/// Reads the counter at the end of a sample.
#[inline(always)]
pub fn ends() -> u64 {
    let count;
    // SAFETY: as in `begins`.
    unsafe {
        asm!(
            "isb",
            "mrs {count}, cntvct_el0",
            "movz xzr, #{mark}",
            mark = const SampleMark::End.immediate(),
            count = out(reg) count,
            options(nostack)
        );
    }
    count
}

/// Marks the last sample as counted.
#[inline(always)]
pub fn is_counted() {
    // SAFETY: the mark writes to the zero register.
    unsafe { asm!("movz xzr, #{}", const SampleMark::Record.immediate(), options(nostack)) };
}

/// Marks that samples from now on belong to cell `id`. The one mark of this kind shows where the program is in memory.
#[inline(never)]
pub fn of_cell(id: usize) {
    // SAFETY: as in `is_counted`.
    unsafe {
        asm!("movz xzr, #{}", const SampleMark::Cell.immediate(), in("x0") id, options(nostack));
    }
}
