// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console: lines, and what is printed when this kernel itself is wrong.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use aarch64_cpu::registers::{ELR_EL1, ESR_EL1, FAR_EL1, MPIDR_EL1, Readable, SPSR_EL1};
use console::Port;
use platform::Uart;
use spin::mutex::SpinMutex;

use crate::hypervisor;
use crate::vectors::Frame;

static PORT: SpinMutex<Option<Port>> = SpinMutex::new(None);

/// Starts output on `uart`.
///
/// # Safety
/// The address must be that of a UART of that kind, mapped as device memory,
/// and MMU and caches must be on.
pub unsafe fn open(uart: Uart) {
    // SAFETY: the caller's promise is the one that `Port::new` asks for.
    *PORT.lock() = Some(unsafe { Port::new(uart) });
}

/// Writes a line.
pub fn line(text: fmt::Arguments<'_>) {
    if let Some(port) = PORT.lock().as_mut() {
        // Output to a `Port` has no error.
        let _ = writeln!(port, "{text}");
    }
}

/// Says that nothing follows; see [`console::END`].
pub fn end() {
    // SAFETY: as in `line_unlocked`, this CPU ends the machine.
    if let Some(port) = unsafe { (*PORT.as_mut_ptr()).as_mut() } {
        let _ = port.write_char(console::END);
    }
}

/// Writes a line without waiting for who holds the console, which may be the
/// CPU that just failed.
pub fn line_unlocked(text: fmt::Arguments<'_>) {
    // SAFETY: this CPU ends the machine; two writers at worst mix characters.
    if let Some(port) = unsafe { (*PORT.as_mut_ptr()).as_mut() } {
        let _ = writeln!(port, "{text}");
    }
}

/// Reports a boot stage; the last one printed tells where a boot that hangs got to.
#[macro_export]
macro_rules! stage {
    ($name:literal, $($arg:tt)*) => {
        $crate::output::line(format_args!(
            concat!("rouse: stage ", $name, ": {}"), format_args!($($arg)*)
        ))
    };
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    arch::insn::mask_all();
    line_unlocked(format_args!(
        "rouse: panic: EL1 on CPU {:#x}: {info}",
        MPIDR_EL1.get() & platform::AFFINITY
    ));
    hypervisor::exit(1)
}

/// Reports an exception that has no handler and ends the machine.
///
/// `vector` is the number of the vector, 0 to 15 in the order of the table.
pub extern "C" fn unexpected(frame: &Frame, vector: u64) -> ! {
    line_unlocked(format_args!(
        "rouse: panic: EL1 on CPU {:#x}: unexpected exception, vector {vector}",
        MPIDR_EL1.get() & platform::AFFINITY
    ));
    line_unlocked(format_args!(
        "rouse:   ELR {:#018x}  SPSR {:#010x}  ESR {:#010x}  FAR {:#018x}",
        ELR_EL1.get(),
        SPSR_EL1.get(),
        ESR_EL1.get(),
        FAR_EL1.get()
    ));
    for (n, value) in frame.x.iter().enumerate() {
        line_unlocked(format_args!("rouse:   x{n:<2} {value:#018x}"));
    }
    hypervisor::exit(1)
}
