// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is printed when the hypervisor itself is wrong, and how it then ends.

use core::panic::PanicInfo;

use aarch64_cpu::registers::{ELR_EL2, ESR_EL2, FAR_EL2, HPFAR_EL2, MPIDR_EL1, Readable, SPSR_EL2};

use crate::log::print_unlocked;
use crate::vectors::Frame;

/// Prints one line without waiting for the console's lock.
macro_rules! dump {
    ($($arg:tt)*) => {
        print_unlocked(format_args!("rouse: {}\n", format_args!($($arg)*)))
    };
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    dump!("panic: EL2 on CPU {:#x}: {info}", MPIDR_EL1.get());
    crate::start::stop()
}

/// Reports an exception that has no handler and stops the machine.
///
/// `vector` is the number of the vector, 0 to 15 in the order of the table.
pub extern "C" fn unexpected(frame: &Frame, vector: u64) -> ! {
    dump!(
        "panic: EL2 on CPU {:#x}: unexpected exception, vector {vector} ({})",
        MPIDR_EL1.get(),
        VECTOR_NAMES[vector as usize & 15]
    );
    registers(frame);
    crate::start::stop()
}

const VECTOR_NAMES: [&str; 16] = [
    "SP_EL0 sync",
    "SP_EL0 IRQ",
    "SP_EL0 FIQ",
    "SP_EL0 SError",
    "EL2 sync",
    "EL2 IRQ",
    "EL2 FIQ",
    "EL2 SError",
    "lower sync",
    "lower IRQ",
    "lower FIQ",
    "lower SError",
    "lower 32-bit sync",
    "lower 32-bit IRQ",
    "lower 32-bit FIQ",
    "lower 32-bit SError",
];

/// Prints the interrupted context.
fn registers(frame: &Frame) {
    dump!(
        "  ELR {:#018x}  SPSR {:#010x}  ESR {:#010x}  FAR {:#018x}  HPFAR {:#x}",
        ELR_EL2.get(),
        SPSR_EL2.get(),
        ESR_EL2.get(),
        FAR_EL2.get(),
        HPFAR_EL2.get()
    );
    for (row, registers) in frame.x.chunks(4).enumerate() {
        print_unlocked(format_args!("rouse:  "));
        for (column, value) in registers.iter().enumerate() {
            print_unlocked(format_args!(" x{:<2} {value:016x}", row * 4 + column));
        }
        print_unlocked(format_args!("\n"));
    }
}
