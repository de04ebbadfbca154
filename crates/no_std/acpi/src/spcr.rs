// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the console from the SPCR ("Serial Port Console Redirection Table", Microsoft).

use platform::{Claims, Uart, UartKind};

use crate::error::Error;
use crate::view::{REVISION, View};

/// Offset of the Interface Type, which has the same values as in the DBG2 table.
const INTERFACE: usize = 36;
/// Offset of the Base Address, a Generic Address Structure, and offsets in that structure.
const BASE_ADDRESS: usize = 40;
const BIT_WIDTH: usize = 1;
const BIT_OFFSET: usize = 2;
const ACCESS_SIZE: usize = 3;
const ADDRESS: usize = 4;

/// The table's description of the console.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Interface Type.
    pub interface: u8,
    /// The UART, if the table names one and its type is known.
    pub uart: Option<Uart>,
}

/// Returns the console that the table names.
pub fn read(spcr: &View<'_>, claims: &mut Claims<'_>) -> Result<Console, Error> {
    spcr.check_length(80, "80 bytes or more")?;
    let revision = spcr.u8(REVISION)?;
    // Revision 1 has only two interface types, and they denote other registers.
    if revision < 2 {
        return Err(spcr.defect(REVISION, "revision 2 or later", revision));
    }
    console_at(spcr, BASE_ADDRESS, spcr.u8(INTERFACE)?, claims)
}

/// Returns the console of type `interface` whose Generic Address Structure (5.2.3.2) is at `gas`.
pub fn console_at(
    view: &View<'_>,
    gas: usize,
    interface: u8,
    claims: &mut Claims<'_>,
) -> Result<Console, Error> {
    let base = view.u64(gas + ADDRESS)?;
    let known = matches!(interface, 0x00 | 0x01 | 0x03 | 0x0c..=0x0e | 0x11..=0x13);
    // Address 0 means no console.
    if !known || base == 0 {
        return Ok(Console {
            interface,
            uart: None,
        });
    }
    let space = view.u8(gas)?;
    if space != 0 {
        return Err(view.defect(gas, "address space 0 (memory)", space));
    }
    let kind = match interface {
        0x00 | 0x01 | 0x12 => ns16550_kind(view, gas)?,
        0x0c => UartKind::Imx,
        0x11 | 0x13 => UartKind::Geni,
        // The access size is not checked here, because some firmware gives a wrong one: all
        // registers of the PL011 and of its SBSA subset take 32-bit accesses.
        _ => UartKind::Pl011,
    };
    let uart = Uart { kind, base };
    view.claim_at(gas + ADDRESS, uart.registers(), kind.alignment(), claims)?;
    Ok(Console {
        interface,
        uart: Some(uart),
    })
}

/// Returns the distance and access width of a 16550's registers. The structure's bit width is the
/// distance; it must be a power of two no smaller than the access size.
fn ns16550_kind(view: &View<'_>, gas: usize) -> Result<UartKind, Error> {
    let offset = view.u8(gas + BIT_OFFSET)?;
    if offset != 0 {
        return Err(view.defect(gas + BIT_OFFSET, "bit offset 0", offset));
    }
    let bits = view.u8(gas + BIT_WIDTH)?;
    let shift = match bits {
        8 => 0,
        16 => 1,
        32 => 2,
        64 => 3,
        _ => return Err(view.defect(gas + BIT_WIDTH, "a bit width of 8, 16, 32 or 64", bits)),
    };
    let size = view.u8(gas + ACCESS_SIZE)?;
    let width = match size {
        // Undefined (0) means byte accesses, as on the original 16550.
        0 | 1 => 1,
        3 => 4,
        _ => {
            let expected = "access size 0, 1 (byte) or 3 (dword)";
            return Err(view.defect(gas + ACCESS_SIZE, expected, size));
        }
    };
    if width > 1_u8 << shift {
        let expected = "an access size no greater than the bit width";
        return Err(view.defect(gas + ACCESS_SIZE, expected, size));
    }
    Ok(UartKind::Ns16550 { shift, width })
}
