// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves out each part of a machine's tables in turn: either the machine is refused with an error
//! that names the table, or the result is the machine without that part.

use crate::tables::{Gicc, MachineTables, Memory, XSDT, gicd, gicr, its, madt, small, table};
use acpi::{Description, Error, Table};

/// Returns the tables of `machine` with an XSDT that does not list table number `left_out`.
fn without_table(machine: &MachineTables, left_out: usize) -> Memory {
    let mut memory = machine.memory();
    let entries = memory.at(XSDT)[36..].to_vec();
    let listed = entries.chunks(8).enumerate();
    let kept = listed.filter(|(index, _)| *index != left_out);
    let kept: Vec<u8> = kept.flat_map(|(_, entry)| entry.to_vec()).collect();
    *memory.at(XSDT) = table(b"XSDT", 1, 36 + kept.len(), &[(36, &kept)]);
    memory
}

#[test]
fn each_table() {
    let machine = small();
    let whole = machine.read().unwrap();
    for (index, missing) in [Table::Fadt, Table::Madt, Table::Gtdt]
        .into_iter()
        .enumerate()
    {
        let error = without_table(&machine, index).read().unwrap_err();
        assert_eq!(error, Error::Missing(missing));
        assert!(error.to_string().contains(&missing.to_string()), "{error}");
    }
    // Without the SPCR, the machine lacks a console and nothing else.
    let mut silent = without_table(&machine, 3).read().unwrap();
    assert_eq!((silent.platform.uart, silent.notes.uart_type), (None, None));
    silent.platform.uart = whole.platform.uart;
    assert_eq!(silent.platform, whole.platform);
}

/// Reads the machine of `structures` without structure number `left_out`.
fn read_without(structures: &[Vec<u8>], left_out: usize) -> Result<Description<'static>, Error> {
    let mut rest = structures.to_vec();
    rest.remove(left_out);
    MachineTables::new(madt(&rest)).read()
}

/// Asserts that the error names the MADT.
fn refused_by_the_madt(result: Result<Description<'static>, Error>) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains("MADT"), "{error}");
}

#[test]
fn each_structure_of_a_madt_with_ranges() {
    let mut structures = vec![gicd(0x800_0000, 3)];
    structures.extend((0..4).map(|cpu| Gicc::new(cpu, 0).bytes()));
    structures.extend([gicr(0x80a_0000, 4 * 0x2_0000), its(0x808_0000)]);
    refused_by_the_madt(read_without(&structures, 0));
    for cpu in 0..4 {
        let found = read_without(&structures, 1 + cpu).unwrap().platform.cpus;
        let others = (0..4).filter(|other| *other != cpu as u64);
        assert!(found.iter().map(|cpu| cpu.mpidr).eq(others));
    }
    // Without the range, no redistributor is left, because no CPU names its own redistributor.
    refused_by_the_madt(read_without(&structures, 5));
    let alone = read_without(&structures, 6).unwrap();
    assert!(alone.notes.its.is_empty());
    assert_eq!(alone.platform, small().read().unwrap().platform);
}

#[test]
fn each_structure_of_a_madt_without_ranges() {
    let cpus = [
        Gicc::new(0x0, 0xb8_0014_0000),
        Gicc::new(0x1_0000, 0xb8_0018_0000),
    ];
    let mut structures = vec![gicd(0x800_0000, 4)];
    structures.extend(cpus.iter().map(Gicc::bytes));
    refused_by_the_madt(read_without(&structures, 0));
    for (index, other) in [(1, 0x1_0000), (2, 0x0)] {
        let left = read_without(&structures, index).unwrap().platform;
        assert_eq!((left.cpus.len(), left.cpus[0].mpidr), (1, other));
        assert_eq!(left.gic.redistributors.len(), 1);
    }
    // There is no CPU at all.
    refused_by_the_madt(MachineTables::new(madt(&structures[..1])).read());
}
