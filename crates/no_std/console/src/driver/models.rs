// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models the UARTs as their manuals describe them, and keeps the bytes that drivers send. A test
//! fails if a driver accesses a register that its UART lacks, or sends a byte to a full FIFO.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::{Registers, is_idle, is_ready, send};
use platform::UartKind;

/// The transmitter: a FIFO of `room` bytes, a shift register, and the line.
#[derive(Default)]
struct Transmitter {
    room: usize,
    fifo: VecDeque<u8>,
    shifting: Option<u8>,
    /// Number of reads of the UART's registers so far.
    looks: u32,
    line: Vec<u8>,
    /// GENI: the number of bytes that the command has yet to receive, and the number that it has yet to send.
    wanted: u32,
    left: u32,
    length: u32,
}

impl Transmitter {
    /// Lets time pass at each read of a register: sending a byte takes seven reads.
    fn pass_time(&mut self) {
        self.looks += 1;
        if self.looks.is_multiple_of(7) {
            if let Some(sent) = self.shifting.take() {
                self.line.push(sent);
                self.left = self.left.saturating_sub(1);
            }
            self.shifting = self.fifo.pop_front();
        }
    }

    fn put(&mut self, byte: u32) {
        assert!(byte < 0x100, "{byte:#x} is not a byte");
        assert!(self.fifo.len() < self.room, "overrun");
        self.fifo.push_back(byte as u8);
    }

    fn full(&self) -> bool {
        self.fifo.len() == self.room
    }

    fn empty(&self) -> bool {
        self.fifo.is_empty()
    }

    fn idle(&self) -> bool {
        self.empty() && self.shifting.is_none()
    }
}

/// Returns the bits of `all` whose condition holds.
fn bits(all: &[(u32, bool)]) -> u32 {
    let set = all.iter().filter(|(_, holds)| *holds);
    set.fold(0, |value, (bit, _)| value | 1 << bit)
}

struct Model {
    kind: UartKind,
    transmitter: RefCell<Transmitter>,
}

impl Registers for Model {
    fn read(&self, offset: usize, width: u8) -> u32 {
        let mut tx = self.transmitter.borrow_mut();
        tx.pass_time();
        match (self.kind, offset, width) {
            // UARTFR: TXFE, TXFF, BUSY.
            (UartKind::Pl011, 0x18, 4) => bits(&[(7, tx.empty()), (5, tx.full()), (3, !tx.idle())]),
            // LSR: TEMT, THRE.
            (UartKind::Ns16550 { shift, width: wide }, at, width)
                if at == 5 << shift && width == wide =>
            {
                bits(&[(6, tx.idle()), (5, tx.empty())])
            }
            // USR2: TXFE, TXDC. UTS: TXEMPTY, TXFULL.
            (UartKind::Imx, 0x98, 4) => bits(&[(14, tx.empty()), (3, tx.idle())]),
            (UartKind::Imx, 0xb4, 4) => bits(&[(6, tx.empty()), (4, tx.full())]),
            // STAT: TDRE, with a watermark of 0, and TC.
            (UartKind::Lpuart { offset }, at, 4) if at == usize::from(offset) + 4 => {
                bits(&[(23, tx.empty()), (22, tx.idle())])
            }
            // GENI_STATUS: M_GENI_CMD_ACTIVE, which is set until the command's last byte has been sent.
            (UartKind::Geni, 0x40, 4) => bits(&[(0, tx.left > 0)]),
            // STAT: TX_FIFO_EMP, TX_FIFO_FUL, TX_EMP, TX_RDY.
            (UartKind::Armada3700, 0xc, 4) => bits(&[
                (13, tx.empty()),
                (11, tx.full()),
                (6, tx.idle()),
                (5, !tx.full()),
            ]),
            other => panic!("read {other:x?}"),
        }
    }

    fn write(&mut self, offset: usize, width: u8, value: u32) {
        let tx = self.transmitter.get_mut();
        match (self.kind, offset, width) {
            (UartKind::Pl011, 0, 4) | (UartKind::Imx, 0x40, 4) | (UartKind::Armada3700, 4, 4) => {
                tx.put(value)
            }
            (UartKind::Ns16550 { width: wide, .. }, 0, width) if width == wide => tx.put(value),
            (UartKind::Lpuart { offset }, at, 4) if at == usize::from(offset) + 12 => tx.put(value),
            // UART_TX_TRANS_LEN.
            (UartKind::Geni, 0x270, 4) => tx.length = value,
            // GENI_M_CMD0: UART_START_TX, only if no command runs.
            (UartKind::Geni, 0x600, 4) => {
                assert_eq!((value >> 27, tx.left), (1, 0), "a command within another");
                (tx.wanted, tx.left) = (tx.length, tx.length);
            }
            // GENI_TX_FIFO: four bytes per word, up to the number that the command wants.
            (UartKind::Geni, 0x700, 4) => {
                assert!(tx.wanted > 0, "data without a command");
                for byte in value.to_le_bytes().into_iter().take(tx.wanted as usize) {
                    tx.put(byte.into());
                    tx.wanted -= 1;
                }
            }
            other => panic!("write {other:x?}"),
        }
    }
}

const KINDS: [UartKind; 9] = [
    UartKind::Pl011,
    UartKind::Ns16550 { shift: 0, width: 1 },
    UartKind::Ns16550 { shift: 2, width: 1 },
    UartKind::Ns16550 { shift: 2, width: 4 },
    UartKind::Imx,
    UartKind::Lpuart { offset: 0x10 },
    UartKind::Lpuart { offset: 0 },
    UartKind::Geni,
    UartKind::Armada3700,
];

#[test]
fn what_is_sent_comes_in_order_and_idle_is_when_all_of_it_has() {
    let text: Vec<u8> = (0..=255).collect();
    for kind in KINDS {
        for room in [1, 16, 64] {
            let transmitter = RefCell::new(Transmitter {
                room,
                ..Transmitter::default()
            });
            let mut model = Model { kind, transmitter };
            assert!(is_idle(kind, &model));
            for &byte in &text {
                while !is_ready(kind, &model) {}
                send(kind, &mut model, byte);
            }
            assert!(!is_idle(kind, &model), "{kind:?}");
            while !is_idle(kind, &model) {}
            assert_eq!(model.transmitter.borrow().line, text, "{kind:?}");
        }
    }
}
