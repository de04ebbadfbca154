// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests tables that end too early or contain a wrong byte.

use crate::gicv2;
use crate::tables::{
    self, FADT, GTDT, Gicc, MADT, MachineTables, Memory, RAM, RSDP, SPCR, XSDT, pair, seal, small,
};
use acpi::{Error, Ram, Table, Tables};
use platform::Room;

/// Miri takes a thousand times as long, so it tests only one offset in 97.
const STEP: usize = if cfg!(miri) { 97 } else { 1 };

/// Returns a machine with ranges of redistributors, one with a redistributor per CPU, and one with a GICv2.
fn machines() -> [MachineTables; 3] {
    let cpu = |n: u64| Gicc::new(n << 16, 0xb8_0014_0000 + n * 0x4_0000);
    [small(), pair(cpu(0), cpu(1)), gicv2::machine(2, &[0, 1])]
}

const TABLES: [(u64, Table); 6] = [
    (RSDP, Table::Rsdp),
    (XSDT, Table::Xsdt),
    (FADT, Table::Fadt),
    (MADT, Table::Madt),
    (GTDT, Table::Gtdt),
    (SPCR, Table::Spcr),
];

#[test]
fn every_changed_byte_is_refused() {
    for (machine, (address, _)) in machines().iter().flat_map(|m| TABLES.map(|t| (m, t))) {
        let mut memory = machine.memory();
        memory.read().unwrap();
        for offset in (0..memory.at(address).len()).step_by(STEP) {
            let good = memory.at(address)[offset];
            for bad in (0..=u8::MAX).filter(|bad| *bad != good).step_by(STEP) {
                memory.at(address)[offset] = bad;
                let read = memory.read();
                assert!(
                    read.is_err(),
                    "{address:#x}+{offset:#x}: {good:#x} -> {bad:#x}"
                );
            }
            memory.at(address)[offset] = good;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn every_changed_byte_is_refused_with_memory_behind_the_table() {
    // A greater length covers additional zeros, which do not change the sum.
    for (machine, (address, _)) in machines().iter().flat_map(|m| TABLES.map(|t| (m, t))) {
        let mut memory = machine.memory();
        for offset in (0..memory.at(address).len()).step_by(STEP) {
            for bit in 0..8 {
                let mut memory = memory.clone();
                memory.at(address)[offset] ^= 1 << bit;
                memory.at(address).extend([0; 0x1000]);
                assert!(memory.read().is_err(), "{address:#x}+{offset:#x} bit {bit}");
            }
        }
    }
}

#[test]
fn memory_that_ends_inside_a_table_is_refused() {
    for (machine, (address, table)) in machines().iter().flat_map(|m| TABLES.map(|t| (m, t))) {
        let mut memory = machine.memory();
        for length in (0..memory.at(address).len()).rev().step_by(STEP) {
            memory.at(address).truncate(length);
            let error = memory.read().unwrap_err();
            // If less than the header is left, the error names the XSDT's entry.
            let named = match error {
                Error::Unreadable { table, .. } => table,
                Error::Defect { table, found, .. } => {
                    assert_eq!(found, address);
                    table
                }
                _ => panic!("{error}"),
            };
            let entry = address >= FADT && length < 36;
            assert_eq!(named, if entry { Table::Xsdt } else { table }, "{error}");
        }
    }
}

/// Returns the machine's memory with the table at `address` cut to `length` bytes; its length field
/// and checksum are corrected.
fn cut_table(machine: &MachineTables, address: u64, length: usize) -> Memory {
    let mut memory = machine.memory();
    memory.at(address).truncate(length);
    seal(memory.at(address));
    memory
}

#[test]
fn tables_of_fixed_form_cut_short_are_refused() {
    // Linux reads these tables only up to the last field that is used here.
    for (address, table, least) in [
        (FADT, Table::Fadt, 132),
        (GTDT, Table::Gtdt, 88),
        (SPCR, Table::Spcr, 80),
    ] {
        let whole = small().read().unwrap();
        let length = small().memory().at(address).len();
        for length in (least..length).step_by(STEP) {
            let read = cut_table(&small(), address, length).read().unwrap();
            assert_eq!(read.platform, whole.platform);
            assert_eq!(read.notes.tolerated.count, 1);
            let text = read.notes.to_string();
            let noted =
                format!("1 defects let pass, the first: ACPI: {table}: offset 0x4: expected");
            assert!(text.contains(&noted), "{text}");
        }
        for length in (36..least).step_by(STEP) {
            match cut_table(&small(), address, length).read() {
                Err(Error::Defect {
                    table: named,
                    offset: 4,
                    found,
                    ..
                }) => {
                    assert_eq!((named, found), (table, length as u64));
                }
                other => panic!("{length}: {other:?}"),
            }
        }
    }
}

#[test]
fn an_xsdt_cut_short_is_refused_or_lacks_tables() {
    let missing = [Table::Fadt, Table::Madt, Table::Gtdt];
    for length in 36..36 + 8 * 4 {
        let read = cut_table(&small(), XSDT, length).read();
        match (length - 36) % 8 {
            0 if length == 36 + 8 * 3 => assert_eq!(read.unwrap().platform.uart, None),
            0 => assert_eq!(
                read.unwrap_err(),
                Error::Missing(missing[(length - 36) / 8])
            ),
            _ => assert!(matches!(
                read,
                Err(Error::Defect {
                    table: Table::Xsdt,
                    offset: 4,
                    ..
                })
            )),
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_madt_cut_short_is_refused_unless_what_is_left_is_a_machine() {
    for machine in machines() {
        let length = machine.madt.len();
        let accepted: Vec<usize> = (36..length)
            .filter(|length| cut_table(&machine, MADT, *length).read().is_ok())
            .collect();
        // One MADT is complete without the second CPU, and one is complete without the ITS.
        let whole_structures = if length == 44 + 24 + 160 { 80 } else { 20 };
        assert_eq!(accepted, [length - whole_structures]);
    }
}

#[test]
fn a_table_that_may_be_the_console_hides_nothing() {
    let mut machine = small();
    machine.others.push(tables::table(b"OEM1", 1, 40, &[]));
    let mut memory = machine.memory();
    assert_eq!(memory.read().unwrap().notes.damaged, 0);
    let other = SPCR + tables::STEP;
    memory.at(other)[38] = 1;
    let read = memory.read().unwrap();
    assert_eq!(read.notes.damaged, 1);
    assert!(read.platform.uart.is_some());
    memory.at(SPCR)[..4].copy_from_slice(b"OEM2");
    tables::seal(memory.at(SPCR));
    let error = memory.read().unwrap_err().to_string();
    let expected = "ACPI: table 'OEM1': offset 0x9: \
        expected a checksum that makes the sum of all bytes 0, found 0x1";
    assert_eq!(error, expected);
}

#[test]
fn a_damaged_console_costs_the_console_only() {
    let whole = small().memory().describe().unwrap();
    let mut memory = small().memory();
    memory.at(SPCR)[40] ^= 1;
    let found = memory.describe().unwrap();
    assert_eq!(found.platform.uart, None);
    let text = found.notes.to_string();
    let said = "a console not used: ACPI: SPCR: offset 0x9";
    assert!(text.contains(said), "{text}");
    let mut platform = found.platform;
    platform.uart = whole.platform.uart;
    assert_eq!(platform, whole.platform);
}

/// Memory that returns more bytes, or fewer, than it was asked for.
struct Careless(Memory, usize);

impl Tables for Careless {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let piece = self.0.0.iter().find(|piece| piece.0 == address)?;
        piece.1.get(..length.checked_add(self.1)?.saturating_sub(1))
    }
}

#[test]
fn memory_of_the_wrong_size_is_not_read() {
    let mut ram = Ram::new();
    ram.usable(RAM).unwrap();
    for surplus in [0, 2] {
        let careless = Careless(small().memory(), surplus);
        let error = acpi::read(&careless, RSDP, &ram, "", &mut Room::new()).unwrap_err();
        let expected = "ACPI: RSDP: 20 bytes at address 0x1000 are not readable memory";
        assert_eq!(error.to_string(), expected);
    }
    let right = Careless(small().memory(), 1);
    acpi::read(&right, RSDP, &ram, "", &mut Room::new()).unwrap();
}
