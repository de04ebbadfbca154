// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulates a PL011 for a guest (DDI 0183G, 3.2 and 3.3). The UART's registers keep the written
//! bits that they implement. The UART sends at once, receives nothing, and has no interrupt line.

const DATA: u64 = 0x00;
const FLAGS: u64 = 0x18;
/// UARTRIS, UARTMIS, UARTICR: the raw interrupts, the unmasked interrupts, and a register to clear.
const RAISED: u64 = 0x3c;
const SHOWN: u64 = 0x40;
const CLEAR: u64 = 0x44;
/// Index of UARTIMSC in [`KEPT`].
const MASK: usize = 6;
/// UARTFR: transmit FIFO empty (7) and receive FIFO empty (4).
const IDLE: u64 = 0x90;
/// The transmit interrupt: the FIFO has space, because a character was sent.
const SENT: u16 = 1 << 5;
/// Peripheral and PrimeCell identification, at offset 0xfe0 (DDI 0183G, 3.3.15).
const IDENTIFICATION: [u8; 8] = [0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1];

/// The layout of a register that keeps written values.
struct Kept {
    offset: u64,
    /// The bits that the register implements.
    bits: u16,
    reset: u16,
}

const fn kept_register(offset: u64, bits: u16, reset: u16) -> Kept {
    Kept {
        offset,
        bits,
        reset,
    }
}

/// UARTILPR, UARTIBRD, UARTFBRD, UARTLCR_H, UARTCR, UARTIFLS, UARTIMSC, UARTDMACR.
const KEPT: [Kept; 8] = [
    kept_register(0x20, 0xff, 0),
    kept_register(0x24, 0xffff, 0),
    kept_register(0x28, 0x3f, 0),
    kept_register(0x2c, 0xff, 0),
    kept_register(0x30, 0xff87, 0x300),
    kept_register(0x34, 0x3f, 0x12),
    kept_register(0x38, 0x7ff, 0),
    kept_register(0x48, 0x7, 0),
];

/// The registers of an emulated PL011.
#[derive(Debug)]
pub struct Pl011 {
    kept: [u16; KEPT.len()],
    raised: u16,
}

impl Pl011 {
    /// Returns the registers in their reset state.
    #[must_use]
    pub const fn new() -> Self {
        let mut kept = [0; KEPT.len()];
        let mut at = 0;
        while at < KEPT.len() {
            kept[at] = KEPT[at].reset;
            at += 1;
        }
        Self { kept, raised: 0 }
    }

    /// Returns the value of the register at `offset`.
    #[must_use]
    pub fn read(&self, offset: u64) -> u64 {
        match offset {
            FLAGS => IDLE,
            RAISED => self.raised.into(),
            SHOWN => (self.raised & self.kept[MASK]).into(),
            0xfe0..0x1000 => u64::from(IDENTIFICATION[(offset as usize - 0xfe0) / 4]),
            _ => index_of(offset).map_or(0, |at| self.kept[at].into()),
        }
    }

    /// Writes the register at `offset`; returns the character that the write sends, if any.
    pub fn write(&mut self, offset: u64, value: u64) -> Option<u8> {
        match offset {
            DATA => {
                self.raised |= SENT;
                return Some(value as u8);
            }
            CLEAR => self.raised &= !(value as u16),
            _ => {
                if let Some(at) = index_of(offset) {
                    self.kept[at] = value as u16 & KEPT[at].bits;
                }
            }
        }
        None
    }
}

impl Default for Pl011 {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the index in [`KEPT`] of the register at `offset`.
fn index_of(offset: u64) -> Option<usize> {
    KEPT.iter().position(|kept| kept.offset == offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_begin_as_documented_and_read_back_what_they_have_bits_for() {
        // The values are from table 3-1 of DDI 0183G.
        for (offset, reset, bits) in [
            (0x20, 0, 0xff),
            (0x24, 0, 0xffff),
            (0x28, 0, 0x3f),
            (0x2c, 0, 0xff),
            (0x30, 0x300, 0xff87),
            (0x34, 0x12, 0x3f),
            (0x38, 0, 0x7ff),
            (0x48, 0, 7),
        ] {
            let mut uart = Pl011::new();
            assert_eq!(uart.read(offset), reset, "{offset:#x}");
            assert_eq!(uart.write(offset, u64::MAX), None);
            assert_eq!(uart.read(offset), bits, "{offset:#x}");
            let others = (0..0x1000).filter(|&other| other != offset);
            for other in others {
                assert_eq!(uart.read(other), Pl011::new().read(other), "{other:#x}");
            }
        }
    }

    #[test]
    fn what_is_sent_raises_the_interrupt_until_it_is_cleared() {
        let mut uart = Pl011::new();
        let seen = |uart: &Pl011| (uart.read(0x3c), uart.read(0x40));
        assert_eq!(seen(&uart), (0, 0));
        assert_eq!(uart.write(0, 0x141), Some(b'A'));
        assert_eq!(seen(&uart), (0x20, 0));
        uart.write(0x38, 0x30);
        assert_eq!(seen(&uart), (0x20, 0x20));
        uart.write(0x44, 0x7df);
        assert_eq!(seen(&uart), (0x20, 0x20));
        uart.write(0x44, 0x20);
        assert_eq!(seen(&uart), (0, 0));
    }

    #[test]
    fn identification_and_flags_can_only_be_read() {
        let mut uart = Pl011::new();
        for offset in [FLAGS, 0xfe0, 0xffc] {
            let before = uart.read(offset);
            assert_eq!(uart.write(offset, 0), None);
            assert_eq!((uart.read(offset), before != 0), (before, true));
        }
    }
}
