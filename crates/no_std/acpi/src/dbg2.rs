// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the console: the SPCR names it or, without a sound SPCR, the first serial port of the DBG2
//! ("Debug Port Table 2", Microsoft).

use platform::{Claims, Uart};

use crate::error::{Error, Table};
use crate::spcr::{self, Console, console_at};
use crate::view::View;

/// Offsets of two header fields: the offset of the first device structure, and the number of these structures.
const FIRST: usize = 36;
const COUNT: usize = 40;
/// Offsets in a device structure, and its minimum size.
const LENGTH: usize = 1;
const PORT_TYPE: usize = 12;
const PORT_SUBTYPE: usize = 14;
const BASE_ADDRESS_OFFSET: usize = 18;
const SIZE: usize = 22;
/// Port Type of a serial port; its subtypes are the SPCR's interface types.
const SERIAL: u16 = 0x8000;

/// The console of a machine.
#[derive(Default)]
pub struct Chosen {
    /// The table that names the console, and the console's interface type, even if the type is unknown.
    pub interface: Option<(Table, u8)>,
    /// The UART, if this crate knows its type.
    pub uart: Option<Uart>,
    /// The defect of the first table that should name a console but does not.
    pub wrong: Option<Error>,
}

/// Chooses between the consoles of the two tables.
pub fn choose_console(
    spcr: Result<Option<View<'_>>, Error>,
    dbg2: Option<View<'_>>,
    claims: &mut Claims<'_>,
) -> Chosen {
    let first = match spcr {
        Ok(Some(spcr)) => spcr::read(&spcr, claims).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let wrong = first.err();
    let named = match first {
        Ok(Some(console)) => Ok(Some((Table::Spcr, console))),
        _ => match dbg2 {
            Some(dbg2) => read(&dbg2, claims).map(|console| Some((Table::Dbg2, console?))),
            None => Ok(None),
        },
    };
    let wrong = wrong.or(named.err());
    let named = named.ok().flatten();
    Chosen {
        interface: named.map(|(table, console)| (table, console.interface)),
        uart: named.and_then(|(_, console)| console.uart),
        wrong,
    }
}

/// Returns the console that the table names, if one of its ports is a serial port.
fn read(dbg2: &View<'_>, claims: &mut Claims<'_>) -> Result<Option<Console>, Error> {
    let mut at = dbg2.u32(FIRST)? as usize;
    for _ in 0..dbg2.u32(COUNT)? {
        let length = dbg2.u16(at.saturating_add(LENGTH))?;
        let expected = "a device with the length of its structure, within the table";
        let device = dbg2
            .sub_view(at, length.into())
            .filter(|device| device.len() >= SIZE);
        let device = device.ok_or_else(|| dbg2.defect(at + LENGTH, expected, length))?;
        if device.u16(PORT_TYPE)? == SERIAL {
            let subtype = device.u16(PORT_SUBTYPE)?;
            // All known types have numbers that fit into the SPCR's 8-bit field.
            let interface = u8::try_from(subtype).unwrap_or(u8::MAX);
            let base = device.u16(BASE_ADDRESS_OFFSET)?;
            return console_at(&device, base.into(), interface, claims).map(Some);
        }
        at += device.len();
    }
    Ok(None)
}
