// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's UART: a PL011 that takes output and has none of its own.
//!
//! Each vCPU's characters are gathered into lines, so that the output of CPUs
//! that print at the same time is not mixed on the real console.

use arrayvec::ArrayVec;

use crate::console::log;

/// PL011 registers (DDI 0183G, 3.2): data, flags.
const DATA: u64 = 0x00;
const FLAGS: u64 = 0x18;
/// Transmit FIFO empty (7), receive FIFO empty (4).
const FLAGS_IDLE: u64 = 0x90;
/// Peripheral and PrimeCell identification, from 0xfe0 on (DDI 0183G, 3.3.15).
const IDENTIFICATION: [u8; 8] = [0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1];

/// Output of one vCPU that is not yet a line.
pub struct GuestUart {
    line: ArrayVec<u8, 256>,
}

impl GuestUart {
    /// Nothing.
    pub const fn new() -> Self {
        Self {
            line: ArrayVec::new_const(),
        }
    }

    /// The value of the register at `offset`.
    pub fn read(offset: u64) -> u64 {
        match offset {
            FLAGS => FLAGS_IDLE,
            0xfe0..0x1000 => u64::from(IDENTIFICATION[(offset as usize - 0xfe0) / 4]),
            _ => 0,
        }
    }

    /// A write of the register at `offset`.
    pub fn write(&mut self, offset: u64, value: u64) {
        if offset == DATA {
            self.take(value as u8);
        }
    }

    /// One more character, which ends the line if it is the last that there is room for.
    pub fn take(&mut self, byte: u8) {
        if byte != b'\r' {
            self.line.push(byte);
        }
        if byte == b'\n' || self.line.is_full() {
            self.flush();
        }
    }

    /// What there is of a line.
    pub fn begun(&self) -> &[u8] {
        &self.line
    }

    /// Sends what there is.
    pub fn flush(&mut self) {
        log::bytes(&self.line);
        self.line.clear();
    }
}
