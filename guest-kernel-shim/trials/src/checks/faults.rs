// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the exceptions that a guest gets for forbidden accesses.

use core::arch::asm;

use super::outcome::{Failure, ensure};
use guest_kernel_shim::machine::{HOLE, platform};
use guest_kernel_shim::vectors::{Exception, catch_exception};
use guest_kernel_shim::{hypervisor, output};

/// Returns the class of `exception`, ESR_EL1.EC.
fn exception_class(exception: Exception) -> u64 {
    exception.esr >> 26
}

pub fn undefined_instruction() -> Result<(), Failure> {
    let caught = catch_exception(|| {
        // SAFETY: the instruction is permanently undefined: it changes nothing, and the handler steps over it.
        unsafe { asm!("udf #0", options(nomem, nostack)) }
    });
    let caught = caught.ok_or("no exception")?;
    ensure(exception_class(caught) == 0, "not an undefined instruction")
}

/// Stops for ever, and takes no interrupt.
pub fn hang_masked() -> ! {
    arch::insn::mask_all();
    arch::insn::hang()
}

/// Reads an address that is not mapped, while no handler expects the fault.
pub fn read_unmapped() {
    // SAFETY: address 0x10 is not mapped, so the read faults and reads nothing.
    unsafe { (0x10 as *const u64).read_volatile() };
}

pub fn nothing_at_a_hole() -> Result<(), Failure> {
    let caught = catch_exception(|| {
        // SAFETY: the hole is mapped as device memory at EL1. Reading it changes nothing, whatever is at these addresses.
        unsafe { asm!("ldr {0:w}, [{1}]", out(reg) _, in(reg) HOLE.base, options(nostack)) }
    });
    let caught = caught.ok_or("no exception")?;
    ensure(exception_class(caught) == 0x25, "not a data abort of EL1")?;
    ensure(caught.esr & 0x3f == 0x10, "not an external abort")?;
    ensure(caught.far == HOLE.base, "another address")
}

/// Searches this guest's RAM for another guest's data, and ends with status 1 if there is such data.
pub fn search_foreign_data() {
    let mut pages = 0;
    let mut found = 0u64;
    for region in &platform().memory {
        for page in (region.base..region.end()).step_by(4096) {
            if !is_mapped(page) {
                continue;
            }
            pages += 1;
            // SAFETY: this is this kernel's own memory, which is mapped.
            let word = unsafe { (page as *const u64).read_volatile() };
            found += u64::from(word == u64::from_ne_bytes(*b"neighbor"));
        }
    }
    output::print(format_args!("ram: {found} of {pages} pages hold old data"));
    hypervisor::end_machine(found.min(1));
}

/// Whether stage 1 maps `page`: some parts of the RAM are not mapped.
fn is_mapped(page: u64) -> bool {
    let result: u64;
    // SAFETY: the AT instruction changes only PAR_EL1, which nothing else uses.
    unsafe {
        asm!("at s1e1r, {0}", "isb", "mrs {1}, par_el1", in(reg) page, out(reg) result,
            options(nostack, preserves_flags));
    }
    result & 1 == 0
}
