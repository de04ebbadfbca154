// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the counter for samples, with marks by which a plugin of the emulator finds the reads (crate `cost`). A mark
//! changes no state, and no sample contains one.

use std::arch::asm;

use cost::SampleMark;

use crate::clock;

/// Reads the counter at the beginning of a sample.
#[inline(always)]
pub fn begins() -> u64 {
    mark::<{ SampleMark::Begin.immediate() }>();
    clock::now()
}

/// Reads the counter at the end of a sample.
#[inline(always)]
pub fn ends() -> u64 {
    let count = clock::now();
    mark::<{ SampleMark::End.immediate() }>();
    count
}

/// Marks the last sample as one that counts.
#[inline(always)]
pub fn is_counted() {
    mark::<{ SampleMark::Record.immediate() }>();
}

/// Marks that the following samples belong to cell `id`. The program contains only one mark of this kind, so the mark's
/// address shows where the program is in memory.
#[inline(never)]
pub fn of_cell(id: usize) {
    // SAFETY: the mark writes to the zero register.
    unsafe {
        asm!("movz xzr, #{}", const SampleMark::Cell.immediate(), in("x0") id, options(nostack));
    }
}

#[inline(always)]
fn mark<const IMMEDIATE: u16>() {
    // SAFETY: the mark writes to the zero register.
    unsafe { asm!("movz xzr, #{}", const IMMEDIATE, options(nostack)) };
}
