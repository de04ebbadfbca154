// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads ACPI tables from files. A file contains either the text output of `acpidump`, or one or more binary tables
//! from `acpidump -b`, `acpixtract` or `/sys/firmware/acpi/tables`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use acpi::Tables;
use anyhow::Result;

use shell::failure::{BadInput, bad_input};
use shell::output::file_arguments;

/// Bytes in the header of every table (ACPI 6.5, 5.2.6).
const HEADER: usize = 36;
/// Largest accepted size of a table, in bytes. No real table is that large.
const MOST: usize = 1 << 24;
/// Signatures of the tables that this program reads and that a machine has only once.
const ONCE: [&[u8; 4]; 4] = [b"APIC", b"GTDT", b"FACP", b"SPCR"];
/// Size of the RSDP in bytes. `XSDT` is the offset of the XSDT from the RSDP.
const RSDP: usize = 36;
const XSDT: usize = 64;

/// The tables as the contents of physical memory that begins at [`Dump::BASE`]. The memory begins with an RSDP and an
/// XSDT that this program makes.
pub struct Dump(Vec<u8>);

impl Tables for Dump {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(Self::BASE)?).ok()?;
        self.0.get(start..start.checked_add(length)?)
    }
}

impl Dump {
    /// Address of a region in which no machine has devices. `SIZE` is the region's size in bytes.
    pub const BASE: u64 = platform::claims::END - Self::SIZE;
    pub const SIZE: u64 = 1 << 30;

    /// Reads the tables in the file `named`, or, if `named` is a folder, in all of its files.
    pub fn read(named: &Path) -> Result<Self> {
        let mut files = vec![named.to_owned()];
        let unread = |error: std::io::Error| {
            let shown = named.display();
            BadInput::error(format!(
                "--acpi: {shown}: {error}; name what acpidump wrote, or a folder of tables"
            ))
        };
        if fs::metadata(named).map_err(unread)?.is_dir() {
            let entries = fs::read_dir(named).map_err(unread)?;
            files = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.is_file())
                .collect();
            files.sort();
        }
        let mut tables: Vec<Vec<u8>> = Vec::new();
        // For each table of `ONCE`, the file in which it was found.
        let mut single: BTreeMap<[u8; 4], PathBuf> = BTreeMap::new();
        for file in files {
            for table in tables_of(&file_arguments::read("--acpi", &file).map_err(unread)?) {
                let signature = [table[0], table[1], table[2], table[3]];
                let other = ONCE
                    .contains(&&signature)
                    .then(|| single.insert(signature, file.clone()));
                if let Some(other) = other.flatten() {
                    bad_input!(
                        "--acpi: {} and {} both have a table {}; name the tables of one machine",
                        other.display(),
                        file.display(),
                        signature.escape_ascii()
                    );
                }
                tables.push(table);
            }
        }
        if tables.is_empty() {
            bad_input!(
                "--acpi: {} has no ACPI table; name what acpidump wrote, or a folder of tables",
                named.display()
            );
        }
        Ok(Self::of(&tables))
    }

    fn of(tables: &[Vec<u8>]) -> Self {
        let mut memory = vec![0; XSDT + HEADER + 8 * tables.len()];
        for (index, table) in tables.iter().enumerate() {
            memory.resize(memory.len().next_multiple_of(16), 0);
            let address = Self::BASE + memory.len() as u64;
            memory[XSDT + HEADER + 8 * index..][..8].copy_from_slice(&address.to_le_bytes());
            memory.extend(table);
        }
        let length = HEADER + 8 * tables.len();
        let xsdt = &mut memory[XSDT..XSDT + length];
        xsdt[..4].copy_from_slice(b"XSDT");
        xsdt[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        xsdt[8] = 1;
        // All tables of one machine have equal OEM fields.
        xsdt[10..24].copy_from_slice(&tables[0][10..24]);
        set_checksum(xsdt, 9);
        let rsdp = &mut memory[..RSDP];
        rsdp[..8].copy_from_slice(b"RSD PTR ");
        rsdp[15] = 2;
        rsdp[20..24].copy_from_slice(&(RSDP as u32).to_le_bytes());
        rsdp[24..32].copy_from_slice(&(Self::BASE + XSDT as u64).to_le_bytes());
        set_checksum(&mut rsdp[..20], 8);
        set_checksum(rsdp, 32);
        Self(memory)
    }
}

/// Sets the byte at `checksum` so that the sum of all bytes is 0.
fn set_checksum(bytes: &mut [u8], checksum: usize) {
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[checksum] = bytes[checksum].wrapping_sub(sum);
}

/// Returns the tables in a file, without the tables that [`Dump`] replaces.
fn tables_of(file: &[u8]) -> Vec<Vec<u8>> {
    let parts = match std::str::from_utf8(file) {
        Ok(text) if text.contains(" @ 0x") => tables_of_text(text),
        _ => tables_of_bytes(file),
    };
    // The FACS has no checksum, and is not in the XSDT, because the FADT has its address (ACPI 6.5, 5.2.10).
    let ours = [b"XSDT", b"RSDT", b"RSD ", b"FACS"];
    let listed =
        |table: &Vec<u8>| table.len() >= HEADER && !ours.iter().any(|own| table.starts_with(*own));
    parts.into_iter().filter(listed).collect()
}

/// Parses the text of `acpidump`: lines `FACP @ 0x...`, and lines `0000: 46 41 43 50 ...  FACP...`.
fn tables_of_text(text: &str) -> Vec<Vec<u8>> {
    let mut tables: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        if line.contains(" @ 0x") {
            tables.push(Vec::new());
        } else if let (Some(table), Some((_, bytes))) = (tables.last_mut(), line.split_once(": ")) {
            // A line has sixteen bytes, and then the same bytes as characters.
            let words = bytes.split(' ').take(16).map_while(|word| {
                (word.len() == 2)
                    .then(|| u8::from_str_radix(word, 16).ok())
                    .flatten()
            });
            table.extend(words);
        }
    }
    tables
}

/// Splits consecutive tables by their lengths.
fn tables_of_bytes(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut tables = Vec::new();
    while rest.len() >= HEADER && rest[..4].iter().all(u8::is_ascii_graphic) {
        let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
        if !(HEADER..=MOST).contains(&length) {
            break;
        }
        // A truncated table is not refused here, but later, by the code that reads the missing part.
        let length = length.min(rest.len());
        tables.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_the_same_tables() {
        let table = |name: &[u8; 4], length: usize| {
            let mut table = vec![0x3a; length];
            table[..4].copy_from_slice(name);
            table[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            table
        };
        let tables = [table(b"FACP", 276), table(b"APIC", 100), table(b"XSDT", 44)];
        let mut text = String::new();
        for table in &tables {
            let name = String::from_utf8_lossy(&table[..4]);
            text += &format!("{name} @ 0x0000000000000000\n");
            for (line, bytes) in table.chunks(16).enumerate() {
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                text += &format!("    {:04X}: {:48} ab cd: 12\n", line * 16, hex.join(" "));
            }
            text += "\n";
        }
        assert_eq!(tables_of(text.as_bytes()), tables[..2]);
        assert_eq!(tables_of(&tables.concat()), tables[..2]);
        assert!(tables_of(b"no table at all, but long enough to be the header of one").is_empty());
    }
}
