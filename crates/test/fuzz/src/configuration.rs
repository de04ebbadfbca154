// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads texts that people write: the file next to a boot image, and the name of a UART.

use config::{Defect, LIMIT, parse};
use platform::UartKind;
use platform::uart::Named;

use crate::bytes::Bytes;
use crate::description;

/// Reads a file into a buffer of any size, and checks that parsing the result again does not change it.
pub fn read_file(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut room = vec![0; bytes.u32() as usize % (2 * LIMIT)];
    match parse(bytes.0, &mut room) {
        Ok(text) => assert_eq!(parse(text.as_bytes(), &mut [0; LIMIT]), Ok(text)),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.defect != Defect::NoRoom || room.len() < LIMIT);
        }
    }
}

/// Parses a text as the name of a UART, and checks the UART's description.
pub fn uart_name(data: &[u8]) {
    match Named::parse(&String::from_utf8_lossy(data)) {
        Some(Named::Ready(uart)) => description::check_uart(&uart),
        Some(Named::Pci { .. }) | None => {}
    }
    // A known width and any shift up to 4 must be accepted.
    let shift = data.len() as u8 % 8;
    let kind = Named::parse(&format!("16550,0x10,{shift},4")).map(|named| match named {
        Named::Ready(uart) => uart.kind,
        Named::Pci { .. } => UartKind::Pl011,
    });
    let expected = UartKind::Ns16550 { shift, width: 4 };
    assert_eq!(kind, (shift <= 4).then_some(expected));
}
