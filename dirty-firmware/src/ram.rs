// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills free RAM with garbage.

use platform::Platform;

use crate::registers::PATTERN;

/// Number of bytes that are written at once.
const BLOCK: u64 = 64;

/// Fills all RAM except the ranges `kept`, which are pairs of start and end. Returns the number of
/// filled bytes.
pub fn fill_ram(platform: &Platform<'_>, kept: &[[u64; 2]]) -> u64 {
    let mut filled = 0;
    for bank in &platform.memory {
        let mut at = bank.base;
        while at < bank.end() {
            let inside = kept.iter().find(|kept| kept[0] <= at && at < kept[1]);
            if let Some(kept) = inside {
                at = kept[1].next_multiple_of(BLOCK);
                continue;
            }
            let next = kept.iter().map(|kept| kept[0]).filter(|start| *start > at);
            let end = next.fold(bank.end(), u64::min) & !(BLOCK - 1);
            if end <= at {
                at += BLOCK;
                continue;
            }
            // SAFETY: the machine's description says that this is RAM, and none of it is kept.
            unsafe { write_pattern(at, end) };
            filled += end - at;
            at = end;
        }
    }
    filled
}

/// Writes the pattern from `at` to `end`, in blocks.
///
/// # Safety
/// The range must be RAM whose contents are not needed.
unsafe fn write_pattern(at: u64, end: u64) {
    // SAFETY: the caller gives the memory away.
    unsafe {
        core::arch::asm!(
            "2: stp {value}, {value}, [{at}], #16",
            "stp {value}, {value}, [{at}], #16",
            "stp {value}, {value}, [{at}], #16",
            "stp {value}, {value}, [{at}], #16",
            "cmp {at}, {end}",
            "b.lo 2b",
            value = in(reg) PATTERN, at = inout(reg) at => _, end = in(reg) end,
            options(nostack),
        );
    }
}
