// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a table even if other tables are damaged: to survey a machine, and to find the console on
//! which a defect is reported.

use arrayvec::ArrayVec;
use platform::claims::Claimed;
use platform::{Claims, Conduit, Region, Uart};

use crate::error::Table;
use crate::notes::Tolerated;
use crate::view::{HEADER, View};
use crate::{Tables, dbg2, fadt, root};

/// The maximum number of tables in the list.
pub const MAX_LISTED: usize = 40;

/// A table that the XSDT lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The table's signature, as found.
    pub signature: [u8; 4],
    /// The table's address, and the length that its header states.
    pub place: Region,
    /// Whether the table's length and checksum are right.
    pub sound: bool,
}

/// Returns the tables that can be reached from the RSDP at physical address `rsdp`, XSDT first.
#[must_use]
pub fn list(tables: &impl Tables, rsdp: u64) -> ArrayVec<Listed, MAX_LISTED> {
    let mut found = ArrayVec::new();
    let Ok(address) = root::xsdt_address(tables, rsdp) else {
        return found;
    };
    found.extend(entry_at(tables, address));
    let Ok(xsdt) = View::read_table(tables, Table::Xsdt, address) else {
        return found;
    };
    for offset in (HEADER..xsdt.len()).step_by(8) {
        let entry = xsdt.u64(offset).ok().and_then(|at| entry_at(tables, at));
        if let Some(entry) = entry {
            // Too many tables are not an error: the list leaves out the tables beyond its maximum.
            let _ = found.try_push(entry);
        }
    }
    found
}

/// Returns the UART that the SPCR names or, without a sound SPCR, the DBG2. Ignores defects of
/// other tables. The physical addresses of the machine end at `end`.
#[must_use]
pub fn console(tables: &impl Tables, rsdp: u64, end: u64) -> Option<Uart> {
    let mut claimed = Claimed::new();
    let mut claims = Claims::new(&[], end, &mut claimed);
    let [spcr, dbg2] = [Table::Spcr, Table::Dbg2].map(|table| lookup(tables, rsdp, table));
    dbg2::choose_console(Ok(spcr), dbg2, &mut claims).uart
}

/// Returns how PSCI is called. Ignores defects of tables other than the FADT.
#[must_use]
pub fn conduit(tables: &impl Tables, rsdp: u64) -> Option<Conduit> {
    fadt::psci_conduit(&lookup(tables, rsdp, Table::Fadt)?, &mut Tolerated::new()).ok()?
}

/// Returns the first table of kind `table`, if its length and checksum are right.
fn lookup<'t>(tables: &'t impl Tables, rsdp: u64, table: Table) -> Option<View<'t>> {
    let listed = list(tables, rsdp);
    let found = |listed: &&Listed| Table::from_signature(listed.signature) == table;
    let listed = listed.iter().find(found)?;
    View::read_table(tables, table, listed.place.base).ok()
}

fn entry_at(tables: &impl Tables, address: u64) -> Option<Listed> {
    let header = View::read_unchecked(tables, Table::Xsdt, address, HEADER).ok()?;
    let signature = header.bytes_at(0).ok()?;
    let place = Region {
        base: address,
        size: u64::from(header.u32(4).ok()?),
    };
    Some(Listed {
        signature,
        place,
        sound: View::read_table(tables, Table::from_signature(signature), address).is_ok(),
    })
}
