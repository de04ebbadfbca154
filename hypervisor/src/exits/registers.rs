// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's registers as an exit finds and leaves them.

use aarch64_cpu::registers::{ELR_EL2, Readable, Writeable};
use arch::frame::Frame;

/// Registers that the fast frame holds: x0 to x18.
const FAST: u32 = 19;

/// Steps over the trapped instruction.
#[inline(always)]
pub fn skip() {
    ELR_EL2.set(ELR_EL2.get() + 4);
}

/// The value of general register `register`, 31 being zero, if the fast frame has it.
#[inline(always)]
pub fn fast_value(frame: &Frame, register: u32) -> Option<u64> {
    match register {
        0..FAST => Some(frame.x[register as usize]),
        31 => Some(0),
        _ => None,
    }
}

/// The value of general register `register`, 31 being zero.
pub fn value(frame: &Frame, register: u32) -> u64 {
    frame.x.get(register as usize).copied().unwrap_or(0)
}
