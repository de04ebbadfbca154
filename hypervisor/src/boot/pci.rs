// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enables a serial port that becomes the console, even if firmware has given it no address. No other part of PCI
//! is needed.

use platform::{Uart, UartKind};

/// Offsets in a function's configuration space (PCI Local Bus Specification 3.0,
/// 6.1 and 6.2).
const COMMAND: u64 = 0x04;
const CLASS: u64 = 0x08;
const BAR0: u64 = 0x10;
/// Class 7, subclass 0, interface 2, in the upper 24 bits: 16550-compatible.
const SERIAL_16550: u32 = 0x07_0002;
/// Address in I/O space for a port that has none; it is above the usual addresses of old devices.
const PLACE: u32 = 0x1000;

/// Makes the 16550 whose configuration space is at `configuration` answer in the I/O window at
/// `window`. Returns `None` if there is no such function.
///
/// # Safety
/// The address must be that of a function's configuration space, accessible as
/// device memory, and nothing else may use it.
pub unsafe fn enable_uart(configuration: u64, window: u64) -> Option<Uart> {
    let register = |offset: u64| (configuration + offset) as *mut u32;
    // SAFETY: the caller vouches for the configuration space; these registers
    // are there in every function (header type 0), and only this one changes.
    let place = unsafe {
        if register(CLASS).read_volatile() >> 8 != SERIAL_16550 {
            return None;
        }
        // Bit 0: I/O space. An address of zero means that there is none.
        let mut bar = register(BAR0).read_volatile();
        if bar & 1 == 0 {
            return None;
        }
        if bar & !3 == 0 {
            register(BAR0).write_volatile(PLACE);
            bar = register(BAR0).read_volatile();
        }
        // I/O space enable; the upper half is the status register, where writing ones clears bits.
        let command = register(COMMAND).read_volatile() & 0xffff;
        register(COMMAND).write_volatile(command | 1);
        u64::from(bar & !3)
    };
    Some(Uart {
        kind: UartKind::Ns16550 { shift: 0, width: 1 },
        base: window + place,
    })
}
