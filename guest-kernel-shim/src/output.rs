// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints lines on the console.

use core::fmt::{self, Write};

use abi::ConsoleWords;
use console::Port;
use platform::Uart;
use spin::mutex::SpinMutex;
use spin::once::Once;

static PORT: SpinMutex<Option<Port>> = SpinMutex::new(None);
/// The hypercall that prints lines instead of the UART; see [`send_by_call`].
static CALL: Once<fn(&ConsoleWords)> = Once::new();

/// Starts output on `uart`.
///
/// # Safety
/// The address must belong to a UART of the given kind, mapped as device memory,
/// and MMU and caches must be on.
pub unsafe fn open(uart: Uart) {
    // SAFETY: the caller promises everything that `Port::new` asks for.
    *PORT.lock() = Some(unsafe { Port::new(uart) });
}

/// Like [`open`], but without taking the lock, which would be an atomic operation.
///
/// # Safety
/// Like [`open`]; in addition, no other CPU may run yet.
pub unsafe fn open_alone(uart: Uart) {
    // SAFETY: as the caller promises; because no other CPU runs, this is the only access.
    unsafe { *PORT.as_mut_ptr() = Some(Port::new(uart)) };
}

/// Sends lines through `call` from now on, and not to the UART.
pub fn send_by_call(call: fn(&ConsoleWords)) {
    CALL.call_once(|| call);
}

/// Writes a line.
pub fn print(text: fmt::Arguments<'_>) {
    write_line(&mut PORT.lock(), text);
}

/// Writes a line, through the hypercall if there is one and otherwise to `port`. Neither way can fail.
fn write_line(port: &mut Option<Port>, text: fmt::Arguments<'_>) {
    if let Some(&call) = CALL.get() {
        let mut gathered = Gathered::new(call);
        let _ = writeln!(gathered, "{text}");
        gathered.flush();
    } else if let Some(port) = port {
        let _ = writeln!(port, "{text}");
    }
}

/// Gathers text for a hypercall, which takes a few characters at a time.
struct Gathered {
    call: fn(&ConsoleWords),
    words: ConsoleWords,
    bytes: usize,
}

impl Gathered {
    fn new(call: fn(&ConsoleWords)) -> Self {
        let words = ConsoleWords::default();
        Self {
            call,
            words,
            bytes: 0,
        }
    }

    fn flush(&mut self) {
        (self.call)(&self.words);
        *self = Self::new(self.call);
    }
}

impl Write for Gathered {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A byte of 0 would end the text.
        for byte in text.bytes().filter(|byte| *byte != 0) {
            if self.bytes == ConsoleWords::ROOM {
                self.flush();
            }
            self.words.put(self.bytes, byte);
            self.bytes += 1;
        }
        Ok(())
    }
}

/// Writes `text` as the last output of all CPUs. Where nothing turns the machine off, other CPUs continue to run after
/// one fails, and must not report a success afterwards.
pub fn print_last(text: fmt::Arguments<'_>) {
    let mut port = PORT.lock();
    write_line(&mut port, text);
    core::mem::forget(port);
}

/// Marks the end of the output; see [`console::END`].
pub fn mark_end() {
    // SAFETY: as in `print_unlocked`, this CPU ends the machine.
    if let Some(port) = unsafe { (*PORT.as_mut_ptr()).as_mut() } {
        let _ = port.write_char(console::END);
    }
}

/// Writes a line without waiting for the console's lock. The CPU that has just failed may hold that
/// lock.
pub fn print_unlocked(text: fmt::Arguments<'_>) {
    // SAFETY: this CPU ends the machine, and two writers can do no worse than mix their characters.
    write_line(unsafe { &mut *PORT.as_mut_ptr() }, text);
}

/// Reports a boot stage; the last stage printed shows where a boot hangs.
#[macro_export]
macro_rules! stage {
    ($name:literal, $($arg:tt)*) => {
        $crate::output::print(format_args!(
            concat!("rouse: stage ", $name, ": {}"), format_args!($($arg)*)
        ))
    };
}
