// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console where there is no SPCR: DBG2 ("Debug Port Table 2", Microsoft), whose first serial
//! port it is.

use platform::Claims;

use crate::error::Error;
use crate::spcr::{Console, at_gas};
use crate::view::View;

/// Offsets of the first structure's offset and of their number.
const FIRST: usize = 36;
const COUNT: usize = 40;
/// Offsets in a structure of a device, and its least size.
const LENGTH: usize = 1;
const PORT_TYPE: usize = 12;
const PORT_SUBTYPE: usize = 14;
const BASE_ADDRESS_OFFSET: usize = 18;
const SIZE: usize = 22;
/// Port Type of a serial port; its subtypes are the SPCR's interface types.
const SERIAL: u16 = 0x8000;

/// The console that the table names, if one is a serial port.
pub fn read(dbg2: &View<'_>, claims: &mut Claims<'_>) -> Result<Option<Console>, Error> {
    let mut at = dbg2.u32(FIRST)? as usize;
    for _ in 0..dbg2.u32(COUNT)? {
        let length = dbg2.u16(at.saturating_add(LENGTH))?;
        let expected = "a device with the length of its structure, within the table";
        let device = dbg2
            .part(at, length.into())
            .filter(|device| device.len() >= SIZE);
        let device = device.ok_or_else(|| dbg2.defect(at + LENGTH, expected, length))?;
        if device.u16(PORT_TYPE)? == SERIAL {
            let subtype = device.u16(PORT_SUBTYPE)?;
            // A number that the SPCR has no room for is none that is known.
            let interface = u8::try_from(subtype).unwrap_or(u8::MAX);
            let base = device.u16(BASE_ADDRESS_OFFSET)?;
            return at_gas(&device, base.into(), interface, claims).map(Some);
        }
        at += device.len();
    }
    Ok(None)
}
