// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console: lines.

use core::fmt::{self, Write};

use console::Port;
use platform::Uart;
use spin::mutex::SpinMutex;

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

/// The same without the lock, which is an atomic operation.
///
/// # Safety
/// As for [`open`]; and no other CPU runs yet.
pub unsafe fn open_alone(uart: Uart) {
    // SAFETY: the caller's promises, the second of which makes this the only access.
    unsafe { *PORT.as_mut_ptr() = Some(Port::new(uart)) };
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

/// Writes a line without waiting for the console's lock. The CPU that just failed may
/// hold it.
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
