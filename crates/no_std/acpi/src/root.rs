// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the RSDP to the tables that this crate reads (5.2.5, 5.2.8).

use crate::Tables;
use crate::error::{Error, Table};
use crate::view::{HEADER, View};

/// Bytes of the RSDP that the first checksum covers: its size in ACPI 1.0.
const RSDP_FIRST: usize = 20;
/// Bytes of the RSDP of revision 2.
const RSDP_SIZE: usize = 36;
/// The maximum length of an RSDP that is accepted.
const RSDP_MAX: usize = 4096;
/// Offsets of the RSDP's fields.
const RSDP_CHECKSUM: usize = 8;
const RSDP_REVISION: usize = 15;
const RSDP_LENGTH: usize = 20;
const RSDP_XSDT: usize = 24;
const RSDP_EXTENDED_CHECKSUM: usize = 32;

/// The tables that this crate reads, each with the right length and checksum.
#[derive(Debug)]
pub struct CheckedTables<'t> {
    pub xsdt: View<'t>,
    pub fadt: View<'t>,
    pub madt: View<'t>,
    pub gtdt: View<'t>,
    /// The SPCR, or the defect in it or in a damaged table that may be the SPCR.
    pub spcr: Result<Option<View<'t>>, Error>,
    /// The DBG2, if it exists and is sound.
    pub dbg2: Option<View<'t>>,
    /// Number of other tables with a wrong length or checksum.
    pub damaged: usize,
}

/// Follows the RSDP at physical address `rsdp` to the tables, and checks them.
pub fn find_tables<'t>(tables: &'t impl Tables, rsdp: u64) -> Result<CheckedTables<'t>, Error> {
    let xsdt = View::read_table(tables, Table::Xsdt, xsdt_address(tables, rsdp)?)?;
    if !(xsdt.len() - HEADER).is_multiple_of(8) {
        let expected = "a length of 36 bytes and 8 for each entry";
        return Err(xsdt.defect(4, expected, xsdt.len() as u64));
    }
    let (mut fadt, mut madt, mut gtdt, mut spcr, mut dbg2) = (None, None, None, None, None);
    let mut damaged = 0;
    let mut damage = None;
    for offset in (HEADER..xsdt.len()).step_by(8) {
        let address = xsdt.u64(offset)?;
        // Some firmware leaves unused entries zero.
        if address == 0 {
            continue;
        }
        let table = table_kind(tables, &xsdt, offset, address)?;
        let slot = match table {
            Table::Fadt => &mut fadt,
            Table::Madt => &mut madt,
            Table::Gtdt => &mut gtdt,
            Table::Spcr => &mut spcr,
            _ => {
                match View::read_table(tables, table, address) {
                    Ok(whole) if table == Table::Dbg2 => dbg2 = dbg2.or(Some(whole)),
                    Ok(_) => {}
                    Err(error) => {
                        damaged += 1;
                        damage = damage.or(Some(error));
                    }
                }
                continue;
            }
        };
        if slot.is_some() {
            return Err(xsdt.defect(offset, "a table not yet listed", address));
        }
        *slot = Some(View::read_table(tables, table, address));
    }
    // The SPCR may be missing. A table whose signature is damaged may be the SPCR, though.
    let spcr = match (spcr, damage) {
        (Some(spcr), _) => spcr.map(Some),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    };
    Ok(CheckedTables {
        xsdt,
        fadt: fadt.ok_or(Error::Missing(Table::Fadt))??,
        madt: madt.ok_or(Error::Missing(Table::Madt))??,
        gtdt: gtdt.ok_or(Error::Missing(Table::Gtdt))??,
        spcr,
        dbg2,
        damaged,
    })
}

/// Returns the kind of table to which the XSDT's entry at `offset` leads.
fn table_kind(
    tables: &impl Tables,
    xsdt: &View<'_>,
    offset: usize,
    address: u64,
) -> Result<Table, Error> {
    let header = View::read_unchecked(tables, Table::Xsdt, address, HEADER)
        .map_err(|_| xsdt.defect(offset, "the address of a readable table", address))?;
    Ok(Table::from_signature(header.bytes_at(0)?))
}

/// Checks the RSDP (5.2.5.3) and returns the address of the XSDT.
pub fn xsdt_address(tables: &impl Tables, rsdp: u64) -> Result<u64, Error> {
    let first = View::read_unchecked(tables, Table::Rsdp, rsdp, RSDP_FIRST)?;
    let signature = first.bytes_at(0)?;
    if signature != *b"RSD PTR " {
        let found = u64::from_be_bytes(signature);
        return Err(first.defect(0, "the signature 'RSD PTR '", found));
    }
    first.check_sum(
        RSDP_CHECKSUM,
        "a checksum that makes the sum of the first 20 bytes 0",
    )?;
    let revision = first.u8(RSDP_REVISION)?;
    if revision < 2 {
        return Err(first.defect(RSDP_REVISION, "revision 2 or later", revision));
    }
    let fixed = View::read_unchecked(tables, Table::Rsdp, rsdp, RSDP_SIZE)?;
    let length = fixed.u32(RSDP_LENGTH)?;
    let longest = if revision == 2 { RSDP_SIZE } else { RSDP_MAX };
    let expected = "36 bytes, or up to 4096 after revision 2";
    let size = usize::try_from(length)
        .ok()
        .filter(|size| (RSDP_SIZE..=longest).contains(size))
        .ok_or(fixed.defect(RSDP_LENGTH, expected, length))?;
    let whole = View::read_unchecked(tables, Table::Rsdp, rsdp, size)?;
    whole.check_sum(
        RSDP_EXTENDED_CHECKSUM,
        "an extended checksum that makes the sum of all bytes 0",
    )?;
    match whole.u64(RSDP_XSDT)? {
        0 => Err(whole.defect(RSDP_XSDT, "the address of the XSDT", 0_u64)),
        address => Ok(address),
    }
}
