// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console at EL2: whole lines, one CPU at a time.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use console::Port;
use platform::Uart;
use spin::mutex::SpinMutex;

use crate::efi;

static PORT: SpinMutex<Option<Port>> = SpinMutex::new(None);
/// The lock is an exclusive access, which needs cacheable memory.
static LOCKING: AtomicBool = AtomicBool::new(false);
/// Firmware is in charge, and so is its console.
static FIRMWARE: AtomicBool = AtomicBool::new(false);

/// From now on output goes to firmware's console, or no longer.
pub fn use_firmware(use_it: bool) {
    FIRMWARE.store(use_it, Ordering::Relaxed);
}

/// Whether output goes to firmware's console.
pub fn uses_firmware() -> bool {
    FIRMWARE.load(Ordering::Relaxed)
}

/// Starts output on `uart`.
///
/// # Safety
/// The address must be that of a UART of that kind, accessible from now on.
pub unsafe fn open(uart: Uart) {
    // SAFETY: the caller's promise is the one that `Port::new` asks for. Only
    // the first CPU runs when this is called, so the unlocked access is alone.
    unsafe { *PORT.as_mut_ptr() = Some(Port::new(uart)) }
}

/// From now on, that is with MMU and caches on, lines are written under a lock.
pub fn enable_locking() {
    LOCKING.store(true, Ordering::Relaxed);
}

/// Writes formatted text as one unit.
pub fn print(text: fmt::Arguments<'_>) {
    if LOCKING.load(Ordering::Relaxed) {
        if let Some(port) = PORT.lock().as_mut() {
            // Output to a `Port` has no error: it loses what it can't send.
            let _ = port.write_fmt(text);
        }
    } else {
        print_unlocked(text);
    }
}

/// Writes bytes as one unit, with carriage returns before line ends.
pub fn bytes(bytes: &[u8]) {
    if let Some(port) = PORT.lock().as_mut() {
        for &byte in bytes {
            if byte == b'\n' {
                port.byte(b'\r');
            }
            port.byte(byte);
        }
    }
}

/// As [`print`], without waiting for whoever holds the console: for a CPU that
/// reports a failure, and before locks work.
pub fn print_unlocked(text: fmt::Arguments<'_>) {
    if uses_firmware() {
        return efi::print(text);
    }
    // SAFETY: before `enable_locking` one CPU runs. In a failure the holder
    // may be the failed CPU itself; two writers at worst mix their characters.
    if let Some(port) = unsafe { (*PORT.as_mut_ptr()).as_mut() } {
        let _ = port.write_fmt(text);
    }
}

/// Prints a line `rouse: ...`.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::log::print(format_args!("rouse: {}\n", format_args!($($arg)*)))
    };
}

/// Reports a boot stage: `rouse: stage <name>: ...`. The last one that was
/// printed tells where a boot that hangs got to.
#[macro_export]
macro_rules! stage {
    ($name:literal, $($arg:tt)*) => {
        $crate::say!(concat!("stage ", $name, ": {}"), format_args!($($arg)*))
    };
}
