// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints EL2's console output: whole lines, from one CPU at a time, on the serial line that EL2
//! shares with the guest.

use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use arch::insn;
use arch::lock::Lock;
use console::Port;
use platform::Uart;

use crate::console::line::Line;

static LINE: Lock<Line> = Lock::new(Line::new());
/// Whether locks work: a lock needs exclusive accesses, which need cacheable memory.
static LOCKING: AtomicBool = AtomicBool::new(false);
/// Whether a CPU has failed.
static FAILED: AtomicBool = AtomicBool::new(false);
/// The firmware, while it is in charge.
static FIRMWARE: AtomicPtr<Firmware> = AtomicPtr::new(ptr::null_mut());

/// Services that firmware gives the hypervisor while firmware is in charge. The services are function pointers, because
/// their callers are on a lower floor than the modules that implement them.
pub struct Firmware {
    /// Writes to firmware's console.
    pub print: fn(fmt::Arguments<'_>),
    /// Turns the machine off.
    pub power_off: fn() -> !,
}

/// Sends output to the console of `firmware` from now on; with `None`, stops sending output to
/// firmware's console.
pub fn use_firmware(firmware: Option<&'static Firmware>) {
    let place = firmware.map_or(ptr::null_mut(), |firmware| {
        ptr::from_ref(firmware).cast_mut()
    });
    FIRMWARE.store(place, Ordering::Relaxed);
}

/// Returns the firmware that is in charge, if any.
pub fn firmware() -> Option<&'static Firmware> {
    // SAFETY: `use_firmware` stores null or a reference that is valid for ever.
    unsafe { FIRMWARE.load(Ordering::Relaxed).as_ref() }
}

/// Starts output on `uart`.
///
/// # Safety
/// The address must be that of a UART of the given kind, and must be accessible from now on.
pub unsafe fn start_output(uart: Uart) {
    // SAFETY: the caller promises everything that `Port::new` asks for. Only the first CPU runs
    // when this is called, so no other access conflicts with this unlocked one.
    let _none_before = unsafe { (*LINE.as_mut_ptr()).connect(Port::new(uart)) };
}

/// Makes every CPU take a lock to write lines from now on. MMU and caches must be on.
pub fn enable_locking() {
    LOCKING.store(true, Ordering::Relaxed);
}

/// Whether locks work.
pub fn can_lock() -> bool {
    LOCKING.load(Ordering::Relaxed)
}

/// Waits until the UART has sent everything that was written. The CPU that ends the machine calls
/// this, and does not wait for the other CPUs.
pub fn drain() {
    // SAFETY: as in `print_unlocked`.
    unsafe { (*LINE.as_mut_ptr()).drain() };
}

/// Writes formatted text as one unit.
pub fn print(text: fmt::Arguments<'_>) {
    if can_lock() {
        with_line(|line| {
            // Output returns no error: a port loses characters that it can't send.
            let _ = line.write_fmt(text);
        });
    } else {
        print_unlocked(text);
    }
}

/// Runs `write` on the line while no other CPU uses it; does nothing once a CPU has failed.
pub fn with_line(write: impl FnOnce(&mut Line)) {
    loop {
        if FAILED.load(Ordering::Relaxed) {
            return;
        }
        if let Some(mut line) = LINE.try_lock() {
            write(&mut line);
            return;
        }
        insn::yield_now();
    }
}

/// Lets only [`print_unlocked`] write from now on: a CPU has failed, and no other CPU may write into its
/// report. First waits for the CPU that is writing, but only for a limited time, because that CPU may be the
/// failed one.
pub fn reserve_for_failure() {
    const PATIENCE: u32 = 100_000;
    FAILED.store(true, Ordering::Relaxed);
    let patience = if can_lock() { PATIENCE } else { 0 };
    for _ in 0..patience {
        if let Some(line) = LINE.try_lock() {
            core::mem::forget(line);
            return;
        }
        insn::yield_now();
    }
}

/// Like [`print`], but does not wait for the CPU that holds the console. A CPU that reports a failure uses this, and so
/// does the first CPU before locks work.
pub fn print_unlocked(text: fmt::Arguments<'_>) {
    if let Some(firmware) = firmware() {
        return (firmware.print)(text);
    }
    // SAFETY: before `enable_locking`, only one CPU runs. After a failure, the holder may be the
    // failed CPU; at worst, two writers mix their characters.
    unsafe {
        let _ = (*LINE.as_mut_ptr()).write_fmt(text);
    }
}

/// Prints the gathered part of a guest's line, for a CPU that reports a failure.
pub fn show_gathered() {
    // SAFETY: as in `print_unlocked`.
    unsafe { (*LINE.as_mut_ptr()).show_gathered() };
}

/// Prints a line that begins with `rouse: `.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::console::log::print(format_args!("rouse: {}\n", format_args!($($arg)*)))
    };
}

/// Reports a boot stage: `rouse: stage <name>: ...`. The last stage printed shows where a boot
/// hangs.
#[macro_export]
macro_rules! stage {
    ($name:literal, $($arg:tt)*) => {
        $crate::say!(concat!("stage ", $name, ": {}"), format_args!($($arg)*))
    };
}
