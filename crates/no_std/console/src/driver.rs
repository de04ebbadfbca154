// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives each kind of UART for polled output: checks whether the UART accepts a byte, sends a byte,
//! and checks whether all bytes have been sent. Speed, format and FIFOs stay as firmware left them.

use platform::UartKind;

#[cfg(test)]
mod models;

/// The registers of a UART.
pub trait Registers {
    /// Reads `width` bytes at `offset`.
    fn read(&self, offset: usize, width: u8) -> u32;
    /// Writes `width` bytes at `offset`.
    fn write(&mut self, offset: usize, width: u8, value: u32);
}

/// PL011 (DDI 0183G, 3.3.1 and 3.3.3): the data register; the flag register, with the bits for
/// "transmit FIFO full" and "still sending".
const PL011_DATA: usize = 0x00;
const PL011_FLAGS: usize = 0x18;
pub const PL011_FULL: u32 = 1 << 5;
pub const PL011_BUSY: u32 = 1 << 3;

/// 16550: the data register; the line status register, with THRE and TEMT.
const NS16550_DATA: usize = 0;
const NS16550_LINE_STATUS: usize = 5;
pub const NS16550_EMPTY: u32 = 1 << 5;
pub const NS16550_IDLE: u32 = 1 << 6;

/// i.MX UART (i.MX 8M reference manual, UART): UTXD; USR2, with TXDC; UTS, with TXFULL.
const IMX_DATA: usize = 0x40;
const IMX_STATUS_2: usize = 0x98;
const IMX_IDLE: u32 = 1 << 3;
const IMX_TEST: usize = 0xb4;
const IMX_FULL: u32 = 1 << 4;

/// LPUART (i.MX 8QuadXPlus reference manual, LPUART), relative to BAUD: STAT, with TDRE, TC; DATA.
const LPUART_STATUS: usize = 0x4;
const LPUART_EMPTY: u32 = 1 << 23;
const LPUART_IDLE: u32 = 1 << 22;
const LPUART_DATA: usize = 0xc;

/// GENI (Linux, include/linux/soc/qcom/geni-se.h, for the facts): the status, with the bit for a
/// running command of the main sequencer; the number of bytes that a command sends; the command,
/// with the opcode in bits 31:27; its transmit FIFO.
const GENI_STATUS: usize = 0x40;
const GENI_ACTIVE: u32 = 1 << 0;
const GENI_LENGTH: usize = 0x270;
const GENI_COMMAND: usize = 0x600;
const GENI_SEND: u32 = 1 << 27;
const GENI_FIFO: usize = 0x700;

/// Armada 3700 (its functional specification, UART 1): TSH; STAT, with the bits for "transmit FIFO
/// full" and "transmitter empty".
const ARMADA_DATA: usize = 0x4;
const ARMADA_STATUS: usize = 0xc;
const ARMADA_FULL: u32 = 1 << 11;
const ARMADA_IDLE: u32 = 1 << 6;

/// Whether the UART accepts a byte.
pub fn is_ready(kind: UartKind, registers: &impl Registers) -> bool {
    let word = |offset| registers.read(offset, 4);
    match kind {
        UartKind::Pl011 => word(PL011_FLAGS) & PL011_FULL == 0,
        UartKind::Ns16550 { shift, width } => {
            registers.read(NS16550_LINE_STATUS << shift, width) & NS16550_EMPTY != 0
        }
        UartKind::Imx => word(IMX_TEST) & IMX_FULL == 0,
        UartKind::Lpuart { offset } => {
            word(usize::from(offset) + LPUART_STATUS) & LPUART_EMPTY != 0
        }
        UartKind::Geni => word(GENI_STATUS) & GENI_ACTIVE == 0,
        UartKind::Armada3700 => word(ARMADA_STATUS) & ARMADA_FULL == 0,
    }
}

/// Sends a byte, for which the UART must be ready.
pub fn send(kind: UartKind, registers: &mut impl Registers, byte: u8) {
    let byte = u32::from(byte);
    match kind {
        UartKind::Pl011 => registers.write(PL011_DATA, 4, byte),
        UartKind::Ns16550 { width, .. } => registers.write(NS16550_DATA, width, byte),
        UartKind::Imx => registers.write(IMX_DATA, 4, byte),
        UartKind::Lpuart { offset } => registers.write(usize::from(offset) + LPUART_DATA, 4, byte),
        UartKind::Geni => {
            // One command per byte: a word of the FIFO may hold several bytes, but this byte is the first.
            registers.write(GENI_LENGTH, 4, 1);
            registers.write(GENI_COMMAND, 4, GENI_SEND);
            registers.write(GENI_FIFO, 4, byte);
        }
        UartKind::Armada3700 => registers.write(ARMADA_DATA, 4, byte),
    }
}

/// Whether the UART has sent all bytes that it accepted.
pub fn is_idle(kind: UartKind, registers: &impl Registers) -> bool {
    let word = |offset| registers.read(offset, 4);
    match kind {
        UartKind::Pl011 => word(PL011_FLAGS) & PL011_BUSY == 0,
        UartKind::Ns16550 { shift, width } => {
            registers.read(NS16550_LINE_STATUS << shift, width) & NS16550_IDLE != 0
        }
        UartKind::Imx => word(IMX_STATUS_2) & IMX_IDLE != 0,
        UartKind::Lpuart { offset } => word(usize::from(offset) + LPUART_STATUS) & LPUART_IDLE != 0,
        UartKind::Geni => word(GENI_STATUS) & GENI_ACTIVE == 0,
        UartKind::Armada3700 => word(ARMADA_STATUS) & ARMADA_IDLE != 0,
    }
}
