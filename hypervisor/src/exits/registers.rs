// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes the guest's registers during an exit.

use aarch64_cpu::registers::{ELR_EL2, Readable, SP_EL0, SP_EL1, SPSR_EL2, Writeable};
use arch::frame::Frame;

/// Number of registers that the fast frame holds: x0 to x18.
const FAST: u32 = 19;

/// Makes the guest continue after the trapped instruction.
#[inline(always)]
pub fn skip_instruction() {
    ELR_EL2.set(ELR_EL2.get() + 4);
}

/// Whether the fast frame has general register `register`, where 31 is zero.
#[inline(always)]
pub const fn is_fast(register: u32) -> bool {
    matches!(register, 0..FAST | 31)
}

/// Returns general register `register`, where 31 is zero, if the fast frame has it.
#[inline(always)]
pub fn fast_register(frame: &Frame, register: u32) -> Option<u64> {
    match register {
        0..FAST => Some(frame.x[register as usize]),
        31 => Some(0),
        _ => None,
    }
}

/// Returns general register `register`, where 31 is zero.
pub fn general_register(frame: &Frame, register: u32) -> u64 {
    frame.x.get(register as usize).copied().unwrap_or(0)
}

/// Returns base register `register`, where 31 is the stack pointer that the guest uses.
pub fn base_register(frame: &Frame, register: u32) -> u64 {
    match frame.x.get(register as usize) {
        Some(&value) => value,
        None if uses_sp_el1() => SP_EL1.get(),
        None => SP_EL0.get(),
    }
}

/// Sets base register `register`, where 31 is the stack pointer that the guest uses.
pub fn set_base_register(frame: &mut Frame, register: u32, value: u64) {
    match frame.x.get_mut(register as usize) {
        Some(place) => *place = value,
        None if uses_sp_el1() => SP_EL1.set(value),
        None => SP_EL0.set(value),
    }
}

/// Whether the guest is at EL1 with its own stack pointer (SPSR_EL2.M is EL1h).
fn uses_sp_el1() -> bool {
    SPSR_EL2.get() & 0x1f == 0b0_0101
}
