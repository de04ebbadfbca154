// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the instruction at which the guest has exited.
//!
//! Another CPU of the guest may change the instruction, or the mapping of its address, at any time: the
//! instruction read here need not be the one executed. So it is checked against the syndrome. A guest that makes
//! such changes can only harm itself: any decoded access uses its own registers, on devices that it has anyway.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ELR_EL2, Readable, SCTLR_EL1, SPSR_EL2};
use arch::insn;

use crate::machine::machine;

/// Reads the instruction. Returns `None` if data accesses at the guest's level can't read it, if it
/// is not in RAM or is AArch32, or if it accesses data in big-endian order, which is not emulated.
pub fn fetch_instruction() -> Option<u32> {
    /// SPSR_EL2.M: AArch32, and the exception level.
    const AARCH32: u64 = 1 << 4;
    const LEVEL: u64 = 0b1100;
    let spsr = SPSR_EL2.get();
    let user = spsr & LEVEL == 0;
    let swaps = match user {
        true => SCTLR_EL1.is_set(SCTLR_EL1::E0E),
        false => SCTLR_EL1.is_set(SCTLR_EL1::EE),
    };
    if spsr & AARCH32 != 0 || swaps {
        return None;
    }
    let pc = ELR_EL2.get();
    let place = match user {
        true => insn::guest_el0_reads(pc)?,
        false => insn::guest_el1_reads(pc)?,
    };
    let ram = machine().guest;
    let inside = place.is_multiple_of(4) && ram.contains(place) && ram.contains(place + 3);
    // SAFETY: this is an aligned word of the guest's RAM, which is mapped here at its physical address.
    inside.then(|| unsafe { (*(place as *const AtomicU32)).load(Relaxed) })
}
