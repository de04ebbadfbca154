// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console: SPCR ("Serial Port Console Redirection Table", Microsoft), with
//! the Generic Address Structure of 5.2.3.2.

use platform::{Region, Uart, UartKind};

use crate::claims::Claims;
use crate::error::Error;
use crate::view::{REVISION, View};

/// Offset of the Interface Type; its values are those of the DBG2 table.
const INTERFACE: usize = 36;
/// Offsets of the Base Address structure's fields.
const SPACE: usize = 40;
const BIT_WIDTH: usize = 41;
const BIT_OFFSET: usize = 42;
const ACCESS_SIZE: usize = 43;
const ADDRESS: usize = 44;
/// Size of a PL011's registers.
const PL011_SIZE: u64 = 0x1000;
/// Number of a 16550's registers.
const NS16550_REGISTERS: u64 = 8;

/// What the table says of the console.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Interface Type.
    pub interface: u8,
    /// The UART, if there is one of a type that is known here.
    pub uart: Option<Uart>,
}

/// The console that the table names.
pub fn read(spcr: &View<'_>, claims: &mut Claims<'_>) -> Result<Console, Error> {
    spcr.at_least(80, "80 bytes or more")?;
    let revision = spcr.u8(REVISION)?;
    // Revision 1 has no interface types but two, which mean other registers.
    if revision < 2 {
        return Err(spcr.defect(REVISION, "revision 2 or later", revision));
    }
    let interface = spcr.u8(INTERFACE)?;
    let base = spcr.u64(ADDRESS)?;
    let known = matches!(interface, 0x00 | 0x01 | 0x03 | 0x0d | 0x0e | 0x12);
    // Address 0 says that there is no console.
    let uart = if known && base != 0 {
        Some(uart(spcr, interface, base, claims)?)
    } else {
        None
    };
    Ok(Console { interface, uart })
}

fn uart(spcr: &View<'_>, interface: u8, base: u64, claims: &mut Claims<'_>) -> Result<Uart, Error> {
    let space = spcr.u8(SPACE)?;
    if space != 0 {
        return Err(spcr.defect(SPACE, "address space 0 (memory)", space));
    }
    let kind = match interface {
        0x00 | 0x01 | 0x12 => ns16550(spcr)?,
        // Some firmware gives a wrong access size here; all of the PL011's
        // registers and of its SBSA subset take 32-bit accesses.
        _ => UartKind::Pl011,
    };
    let (size, align) = match kind {
        UartKind::Pl011 => (PL011_SIZE, 4),
        UartKind::Ns16550 { shift, width } => (NS16550_REGISTERS << shift, u64::from(width)),
    };
    let expected = "an address aligned to the accesses";
    claims.take(spcr, ADDRESS, Region { base, size }, (align, expected))?;
    Ok(Uart { kind, base })
}

/// Distance and access width of a 16550's registers: the structure's bit width
/// is the distance and must be a power of two no smaller than the access size.
fn ns16550(spcr: &View<'_>) -> Result<UartKind, Error> {
    let offset = spcr.u8(BIT_OFFSET)?;
    if offset != 0 {
        return Err(spcr.defect(BIT_OFFSET, "bit offset 0", offset));
    }
    let bits = spcr.u8(BIT_WIDTH)?;
    let shift = match bits {
        8 => 0,
        16 => 1,
        32 => 2,
        64 => 3,
        _ => return Err(spcr.defect(BIT_WIDTH, "a bit width of 8, 16, 32 or 64", bits)),
    };
    let size = spcr.u8(ACCESS_SIZE)?;
    let width = match size {
        // Undefined: bytes, as the 16550 has always had them.
        0 | 1 => 1,
        3 => 4,
        _ => return Err(spcr.defect(ACCESS_SIZE, "access size 0, 1 (byte) or 3 (dword)", size)),
    };
    if width > 1_u8 << shift {
        let expected = "an access size no greater than the bit width";
        return Err(spcr.defect(ACCESS_SIZE, expected, size));
    }
    Ok(UartKind::Ns16550 { shift, width })
}
