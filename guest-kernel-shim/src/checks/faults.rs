// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of what a guest gets for what it must not do.

use core::arch::asm;

use super::{Failure, ensure};
use crate::start::HOLE;
use crate::vectors::{Exception, catching};

/// ESR_EL1.EC.
fn class(exception: Exception) -> u64 {
    exception.esr >> 26
}

pub fn undefined_instruction() -> Result<(), Failure> {
    let caught = catching(|| {
        // SAFETY: permanently undefined: it changes nothing, and the handler
        // steps over it.
        unsafe { asm!("udf #0", options(nomem, nostack)) }
    });
    let caught = caught.ok_or("no exception")?;
    ensure(class(caught) == 0, "not an undefined instruction")
}

/// Reads what is not mapped, which nobody catches.
pub fn abort() {
    // SAFETY: address 0x10 is not mapped: the read faults and reads nothing.
    unsafe { (0x10 as *const u64).read_volatile() };
}

pub fn nothing_at_a_hole() -> Result<(), Failure> {
    let caught = catching(|| {
        // SAFETY: mapped as device memory at EL1; whatever is there or not, a
        // read of it changes nothing.
        unsafe { asm!("ldr {0:w}, [{1}]", out(reg) _, in(reg) HOLE.base, options(nostack)) }
    });
    let caught = caught.ok_or("no exception")?;
    ensure(class(caught) == 0x25, "not a data abort of EL1")?;
    ensure(caught.esr & 0x3f == 0x10, "not an external abort")?;
    ensure(caught.far == HOLE.base, "another address")
}
