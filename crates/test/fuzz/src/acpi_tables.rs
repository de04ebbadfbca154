// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads ACPI tables. The input's bytes are the physical memory from [`BASE`] on, which begins with the RSDP.

use acpi::{Ram, Tables};
use platform::{Region, Room};

use crate::description;

/// The address of the input's first byte.
const BASE: u64 = 0x1000;
/// Offsets of a table's length and checksum, and of the RSDP's two checksums.
const LENGTH: usize = 4;
const CHECKSUM: usize = 9;
const RSDP_CHECKSUM: usize = 8;
const RSDP_EXTENDED_CHECKSUM: usize = 32;

struct Memory(Vec<u8>);

impl Tables for Memory {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = offset(address)?;
        self.0.get(start..start.checked_add(length)?)
    }
}

/// Reads the tables once unchanged, and once with corrected checksums, so that the code after the checks runs too.
pub fn read(data: &[u8]) {
    let mut memory = Memory(data.to_vec());
    parse(&memory);
    repair(&mut memory.0);
    parse(&memory);
}

fn parse(memory: &Memory) {
    let mut ram = Ram::new();
    let usable = Region {
        base: 0x4000_0000,
        size: 0x4000_0000,
    };
    ram.usable(usable)
        .expect("a region within the address space");
    match acpi::read(memory, BASE, &ram, "", &mut Room::new()) {
        Ok(description) => description::check(&description.platform),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn repair(memory: &mut [u8]) {
    let Some(xsdt) = memory.get(24..32).and_then(to_u64).and_then(offset) else {
        return;
    };
    // The checksum of the XSDT is set last, because correcting a table that overlaps the XSDT would invalidate it.
    for table in xsdt_entries(memory, xsdt) {
        fix_checksum(memory, table);
    }
    fix_checksum(memory, xsdt);
    set_checksum(memory, 0, 20, RSDP_CHECKSUM);
    set_checksum(memory, 0, 36, RSDP_EXTENDED_CHECKSUM);
}

/// Returns the addresses of the tables that the XSDT names.
fn xsdt_entries(memory: &[u8], xsdt: usize) -> Vec<usize> {
    let end = xsdt.saturating_add(length(memory, xsdt)).min(memory.len());
    let entries = memory.get(xsdt.saturating_add(36)..end).unwrap_or(&[]);
    let addresses = entries.chunks_exact(8).filter_map(to_u64);
    addresses.filter_map(offset).collect()
}

fn fix_checksum(memory: &mut [u8], table: usize) {
    let length = length(memory, table);
    set_checksum(memory, table, length, CHECKSUM);
}

fn length(memory: &[u8], table: usize) -> usize {
    let field = table
        .checked_add(LENGTH)
        .and_then(|at| memory.get(at..at + 4));
    field.map_or(0, |field| {
        field
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | usize::from(byte))
    })
}

/// Sets the byte at `checksum` so that the sum of `length` bytes is 0.
fn set_checksum(memory: &mut [u8], start: usize, length: usize, checksum: usize) {
    let end = start.saturating_add(length);
    if let Some(table) = memory
        .get_mut(start..end)
        .filter(|table| table.len() > checksum)
    {
        let sum = table.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        table[checksum] = table[checksum].wrapping_sub(sum);
    }
}

fn offset(address: u64) -> Option<usize> {
    usize::try_from(address.checked_sub(BASE)?).ok()
}

fn to_u64(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
