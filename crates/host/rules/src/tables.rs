// SPDX-License-Identifier: MIT OR Apache-2.0
//! The translation tables that were found to be in use.

use std::collections::HashMap;

/// Bytes of a table with 4 KiB granules. Other granules are not checked.
pub const TABLE: u64 = 4096;
/// Bits of the output address in a descriptor.
pub const ADDRESS: u64 = 0xffff_ffff_f000;

/// TG0 of TCR_ELx and VTCR_EL2, which is 0 for 4 KiB.
const GRANULE: u64 = 3 << 14;

/// Reads the word at a physical address.
pub type Read<'a> = &'a dyn Fn(u64) -> Option<u64>;
/// Converts an address in a descriptor to an address in memory.
pub type Locate<'a> = &'a dyn Fn(u64) -> Option<u64>;

/// A table.
#[derive(Debug)]
struct Table {
    /// Level of the table in a lookup, 0 to 3.
    level: u8,
    /// Whether the table belongs to stage 1 of EL1, whose output addresses are intermediate physical addresses.
    intermediate: bool,
    entries: Box<[u64; 512]>,
}

/// The tables in use, by their address in memory.
#[derive(Debug, Default)]
pub struct Tables(HashMap<u64, Table>);

/// The change of an entry by a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The entry before the change.
    pub old: u64,
    /// The entry after the change.
    pub new: u64,
    /// The level of the table that contains the entry.
    pub level: u8,
    /// Whether the table's output addresses are intermediate physical addresses.
    pub intermediate: bool,
}

impl Tables {
    /// Adds the table of `level` at `address`, and all tables below it. Calls `found` with the address of each new
    /// table.
    pub fn add_table(
        &mut self,
        address: u64,
        level: u8,
        intermediate: bool,
        (read, locate): (Read<'_>, Locate<'_>),
        found: &mut dyn FnMut(u64),
    ) {
        if self.0.contains_key(&address) {
            return;
        }
        let mut entries = Box::new([0; 512]);
        for (n, entry) in entries.iter_mut().enumerate() {
            *entry = read(address + 8 * n as u64).unwrap_or(0);
        }
        let below = entries.clone();
        self.0.insert(
            address,
            Table {
                level,
                intermediate,
                entries,
            },
        );
        found(address);
        for descriptor in below.into_iter().filter(|one| points_to_table(*one, level)) {
            if let Some(next) = table_below(descriptor, intermediate, locate) {
                self.add_table(next, level + 1, intermediate, (read, locate), found);
            }
        }
    }

    /// Returns the change that a store of `new` to `address` causes. Returns `None` if the entry does not change, or if
    /// no table contains the address.
    pub fn change_by_store(&mut self, address: u64, new: u64) -> Option<Change> {
        let table = self.0.get_mut(&(address & !(TABLE - 1)))?;
        let entry = &mut table.entries[(address % TABLE / 8) as usize];
        let old = std::mem::replace(entry, new);
        let (level, intermediate) = (table.level, table.intermediate);
        (old != new).then_some(Change {
            old,
            new,
            level,
            intermediate,
        })
    }
}

/// Whether `descriptor`, at `level`, points to another table.
pub fn points_to_table(descriptor: u64, level: u8) -> bool {
    descriptor & 3 == 3 && level < 3
}

/// Returns the physical address of the table to which `descriptor` points.
pub fn table_below(descriptor: u64, intermediate: bool, locate: Locate<'_>) -> Option<u64> {
    let address = descriptor & ADDRESS;
    if intermediate {
        locate(address)
    } else {
        Some(address)
    }
}

/// Returns the level at which a lookup begins if addresses have `64 - size` bits, with 4 KiB granules (DDI 0487K.a,
/// D8.2).
pub fn first_level(size: u64) -> u8 {
    let bits = 64 - size.clamp(16, 39);
    3 - ((bits - 13) / 9) as u8
}

/// Returns the address and the level of the root table, given the values of a base register and its control register.
pub fn root(base: u64, control: u64) -> Option<(u64, u8)> {
    (control & GRANULE == 0).then(|| (base & ADDRESS & !1, first_level(control & 0x3f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_from_their_root_and_watched() {
        let memory = HashMap::from([
            (0x1000, 0x2003),
            (0x2008, 0x5003),
            (0x5010, 0x7003),
            (0x7ff8, 0x9703),
        ]);
        let read = |at| Some(memory.get(&at).copied().unwrap_or(0));
        let mut tables = Tables::default();
        let mut found = Vec::new();
        let same = |address| Some(address);
        tables.add_table(0x1000, 0, false, (&read, &same), &mut |at| found.push(at));
        assert_eq!(found, [0x1000, 0x2000, 0x5000, 0x7000]);
        let change = Change {
            old: 0x9703,
            new: 0,
            level: 3,
            intermediate: false,
        };
        assert_eq!(tables.change_by_store(0x7ff8, 0), Some(change));
        assert_eq!(tables.change_by_store(0x7ff8, 0), None);
        assert_eq!(tables.change_by_store(0x9000, 1), None);
    }

    #[test]
    fn lookups_begin_where_the_size_says() {
        let levels = [16, 24, 25, 33, 34, 39].map(first_level);
        assert_eq!(levels, [0, 0, 1, 1, 2, 2]);
    }
}
