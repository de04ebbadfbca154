// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints this kernel's own failures, before it ends the machine.

use core::panic::PanicInfo;

use aarch64_cpu::registers::{ELR_EL1, ESR_EL1, FAR_EL1, MPIDR_EL1, Readable, SPSR_EL1};
use arch::frame::Frame;

use crate::hypervisor;
use crate::output::print_unlocked;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    arch::insn::mask_all();
    print_unlocked(format_args!(
        "rouse: panic: EL1 on CPU {:#x}: {info}",
        MPIDR_EL1.get() & platform::AFFINITY
    ));
    hypervisor::end_machine(1)
}

/// Reports an exception that has no handler and ends the machine.
///
/// `vector` is the number of the vector, 0 to 15 in the order of the table.
pub extern "C" fn unexpected(frame: &Frame, vector: u64) -> ! {
    print_unlocked(format_args!(
        "rouse: panic: EL1 on CPU {:#x}: unexpected exception, vector {vector}",
        MPIDR_EL1.get() & platform::AFFINITY
    ));
    print_unlocked(format_args!(
        "rouse:   ELR {:#018x}  SPSR {:#010x}  ESR {:#010x}  FAR {:#018x}",
        ELR_EL1.get(),
        SPSR_EL1.get(),
        ESR_EL1.get(),
        FAR_EL1.get()
    ));
    for (n, value) in frame.x.iter().enumerate() {
        print_unlocked(format_args!("rouse:   x{n:<2} {value:#018x}"));
    }
    hypervisor::end_machine(1)
}
