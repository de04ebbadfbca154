// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints by polling on a UART of a kind that [`platform::UartKind`] names.
//!
//! The port stays as firmware left it, with its speed and format. The code must work with the MMU
//! off, so it is very plain. A port that never becomes ready loses characters, but does not stop
//! the machine.

#![cfg_attr(not(test), no_std)]

mod driver;
mod emulated;

pub use emulated::Pl011;

use core::fmt;
use core::hint::spin_loop;

use driver::Registers;
use platform::Uart;

/// Number of reads of the status register before a byte is dropped. This many reads take longer
/// than a byte at 9600 baud if a device read takes at least 20 ns.
const PATIENCE: u32 = 200_000;

/// End of transmission: the character that ends a machine without firmware that could turn it off.
/// Arm's models and gem5 can be configured to stop when their UART receives it.
pub const END: char = '\u{4}';

/// An output port. A port has no lock, so code that shares a port must provide one.
#[derive(Debug)]
pub struct Port {
    uart: Uart,
    lost: u64,
    /// Whether the port did not accept the last byte, which was dropped.
    stalled: bool,
}

impl Port {
    /// Takes over the UART.
    ///
    /// # Safety
    /// `uart.base` must be the address of a UART of that kind, which must be accessible as device
    /// memory for as long as the port is used.
    #[must_use]
    pub const unsafe fn new(uart: Uart) -> Self {
        Self {
            uart,
            lost: 0,
            stalled: false,
        }
    }

    /// Returns the number of bytes that were dropped because the port did not become ready.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Sends one byte; waits a bounded time until the port accepts the byte. If the port did not
    /// accept the last byte, reads the status only once, so only the first lost byte costs time,
    /// however long the output is.
    pub fn byte(&mut self, byte: u8) {
        for _ in 0..self.max_status_reads() {
            if driver::is_ready(self.uart.kind, &self.registers()) {
                self.stalled = false;
                driver::send(self.uart.kind, &mut self.registers(), byte);
                return;
            }
            spin_loop();
        }
        self.stalled = true;
        self.lost += 1;
    }

    /// Waits a bounded time until all bytes have left the UART: bytes in its FIFO would be lost
    /// when the machine turns off.
    pub fn drain(&mut self) {
        /// Number of bytes that a FIFO holds.
        const FIFO: u32 = 64;
        let patience = self.max_status_reads().saturating_mul(FIFO);
        if !(0..patience).any(|_| driver::is_idle(self.uart.kind, &self.registers())) {
            self.stalled = true;
        }
    }

    const fn registers(&self) -> Mmio {
        Mmio(self.uart.base as usize)
    }

    /// Returns the maximum number of status register reads for the next byte.
    const fn max_status_reads(&self) -> u32 {
        if self.stalled { 1 } else { PATIENCE }
    }
}

/// The registers of a UART at a physical address.
struct Mmio(usize);

impl Registers for Mmio {
    fn read(&self, offset: usize, width: u8) -> u32 {
        let address = self.0 + offset;
        // SAFETY: the caller of `Port::new` promised a UART at this address; status registers have
        // no read side effect that output depends on.
        unsafe {
            match width {
                4 => (address as *const u32).read_volatile(),
                _ => u32::from((address as *const u8).read_volatile()),
            }
        }
    }

    fn write(&mut self, offset: usize, width: u8, value: u32) {
        let address = self.0 + offset;
        // SAFETY: as in `read`; drivers write with the width that their kind requires.
        unsafe {
            match width {
                4 => (address as *mut u32).write_volatile(value),
                _ => (address as *mut u8).write_volatile(value as u8),
            }
        }
    }
}

impl fmt::Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.byte(b'\r');
            }
            self.byte(byte);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::driver::{NS16550_EMPTY, NS16550_IDLE, PL011_BUSY, PL011_FULL};
    use super::*;
    use core::fmt::Write;
    use platform::UartKind;

    /// Returns a port for registers in memory, which keep the last value written.
    fn port(kind: UartKind, registers: &mut [u32; 16]) -> Port {
        let base = registers.as_mut_ptr() as u64;
        // SAFETY: the array outlives the port in every test and is as large as the register
        // block.
        unsafe { Port::new(Uart { kind, base }) }
    }

    #[test]
    fn draining_ends_when_all_is_sent_and_after_a_while() {
        let mut registers = [0; 16];
        let mut port_of = |kind, status: Option<(usize, u32)>| {
            registers = [0; 16];
            if let Some((at, value)) = status {
                registers[at] = value;
            }
            let mut port = port(kind, &mut registers);
            port.drain();
            port.stalled
        };
        let wide = UartKind::Ns16550 { shift: 2, width: 4 };
        assert!(!port_of(UartKind::Pl011, None));
        assert!(port_of(UartKind::Pl011, Some((6, PL011_BUSY))));
        assert!(!port_of(wide, Some((5, NS16550_IDLE))));
        assert!(port_of(wide, Some((5, NS16550_EMPTY))));
    }

    #[test]
    fn pl011_sends_when_the_fifo_has_room() {
        let mut registers = [0; 16];
        let mut port = port(UartKind::Pl011, &mut registers);
        port.write_str("ab").unwrap();
        assert_eq!(port.lost(), 0);
        assert_eq!(registers[0], u32::from(b'b'));
    }

    #[test]
    fn a_port_that_is_never_ready_loses_bytes_and_returns() {
        let mut registers = [0; 16];
        let kind = UartKind::Ns16550 { shift: 2, width: 4 };
        let mut port = port(kind, &mut registers);
        port.byte(b'x');
        assert_eq!(port.lost(), 1);
        assert_eq!(registers[0], 0);
    }

    #[test]
    fn a_port_that_stalls_is_waited_for_once_and_used_again() {
        let mut registers = [0; 16];
        registers[6] = PL011_FULL;
        let kind = UartKind::Pl011;
        let mut port = port(kind, &mut registers);
        port.byte(b'x');
        assert_eq!(port.max_status_reads(), 1);
        let text = "a line that is not read\n".repeat(1000);
        port.write_str(&text).unwrap();
        // The port sends a carriage return before each line feed.
        let bytes = (text.len() + 1000) as u64;
        assert_eq!((port.lost(), port.max_status_reads()), (1 + bytes, 1));
        registers[6] = 0;
        port.byte(b'y');
        assert_eq!((port.lost(), registers[0]), (1 + bytes, u32::from(b'y')));
        assert_eq!(port.max_status_reads(), PATIENCE);
    }

    #[test]
    fn ns16550_registers_are_spaced_by_the_shift() {
        let mut registers = [0; 16];
        registers[5] = NS16550_EMPTY;
        let kind = UartKind::Ns16550 { shift: 2, width: 4 };
        port(kind, &mut registers).byte(b'y');
        assert_eq!(registers[0], u32::from(b'y'));
    }
}
