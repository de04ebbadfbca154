// SPDX-License-Identifier: MIT OR Apache-2.0
//! MADTs whose length and checksum are right, but whose contents are impossible.

use crate::tables::{Gicc, MachineTables, RAM, gicd, gicr, its, madt, pair, refused, refused_at};
use acpi::Table;
use platform::MAX_CPUS;

/// Returns the offset of the `n`-th GICC in the MADT of [`pair`].
const fn gicc_at(n: usize) -> usize {
    44 + 24 + 80 * n
}

fn first() -> Gicc {
    Gicc::new(0x0, 0xb8_0014_0000)
}

fn second() -> Gicc {
    Gicc::new(0x1_0000, 0xb8_0018_0000)
}

fn build(structures: &[Vec<u8>]) -> MachineTables {
    MachineTables::new(madt(structures))
}

#[test]
fn cpus_that_are_off_are_not_used() {
    let online_capable = Gicc {
        flags: 8,
        redistributor: 0,
        ..second()
    };
    let description = pair(first(), online_capable).read().unwrap();
    assert_eq!(description.platform.cpus.len(), 1);
    assert_eq!(description.platform.gic.redistributors.len(), 1);
    assert_eq!(description.notes.online_capable, 1);
    // The fields of an unusable CPU are not checked.
    let junk = Gicc {
        maintenance: 99,
        ..Gicc::new(u64::MAX, 1).off()
    };
    let description = pair(junk, second()).read().unwrap();
    assert_eq!(description.platform.cpus[0].mpidr, 0x1_0000);
    assert_eq!(description.notes.unusable, 1);
    let both = Gicc {
        flags: 9,
        ..second()
    };
    // Linux treats a CPU with both flags as enabled.
    let description = pair(first(), both).read().unwrap();
    assert_eq!(description.platform.cpus.len(), 2);
    let noted = description.notes.tolerated.first.unwrap().to_string();
    assert!(
        noted.contains("not both Enabled (bit 0) and Online Capable (bit 3), found 0x9"),
        "{noted}"
    );
    refused(
        &pair(first().off(), second().off()),
        "ACPI: MADT (signature APIC): offset 0xe4: \
         expected a GICC structure of an enabled CPU, found 0x0",
    );
}

#[test]
fn affinities_are_affinities_and_unique() {
    let same = Gicc {
        mpidr: 0,
        ..second()
    };
    refused(
        &pair(first(), same),
        "ACPI: MADT (signature APIC): offset 0xd8: \
         expected an MPIDR that no other enabled CPU has, found 0x0",
    );
    pair(first().off(), same).read().unwrap();
    for bit in [24, 30, 31, 40, 63] {
        let wrong = Gicc {
            mpidr: 1 << bit,
            ..second()
        };
        refused_at(&pair(first(), wrong), Table::Madt, gicc_at(1) + 68);
    }
}

#[test]
fn redistributors_are_described_once_and_apart() {
    for base in [
        0,
        0x1000,
        0xb8_0014_0000,
        0xb8_0016_0000,
        0x800_0000,
        1 << 48,
        RAM.base,
    ] {
        let wrong = Gicc {
            redistributor: base,
            ..second()
        };
        refused_at(&pair(first(), wrong), Table::Madt, gicc_at(1) + 60);
    }
    // If a range is described, a CPU's own redistributor address must be ignored.
    let description = build(&[
        gicd(0x800_0000, 3),
        first().bytes(),
        gicr(0x80a_0000, 0x4_0000),
        second().bytes(),
    ])
    .read()
    .unwrap();
    assert_eq!(description.platform.gic.redistributors.len(), 1);
    for range in [
        gicr(0x80a_0000, 0x1_0000),
        gicr(0x80a_0000, 0x2_8000),
        gicr(0x80a_0000, 0),
        gicr(0, 0x4_0000),
        gicr(0x80a_1000, 0x4_0000),
        gicr(0x7fe_0000, 0x4_0000),
        gicr(0x7fff_0000, 0x2_0000),
        gicr(u64::MAX - 0xffff, 0x2_0000),
    ] {
        let machine = build(&[gicd(0x800_0000, 3), first().bytes(), range]);
        assert!(machine.read().is_err());
    }
    let twice = gicr(0x80a_0000, 0x4_0000);
    let machine = build(&[gicd(0x800_0000, 3), first().bytes(), twice.clone(), twice]);
    refused(
        &machine,
        "ACPI: MADT (signature APIC): offset 0xa8: \
         expected registers that overlap no other device's, found 0x80a0000",
    );
}

#[test]
fn more_ranges_than_fit_are_refused() {
    let most = MAX_CPUS as u64;
    let ranges = (0..=most).map(|n| gicr(0x1000_0000 + n * 0x2_0000, 0x2_0000));
    let mut structures = vec![gicd(0x800_0000, 3), first().bytes()];
    structures.extend(ranges);
    refused_at(
        &build(&structures),
        Table::Madt,
        44 + 24 + 80 + MAX_CPUS * 16 + 4,
    );
    structures.pop();
    let platform = build(&structures).read().unwrap().platform;
    assert_eq!(platform.gic.redistributors.len(), MAX_CPUS);
}

#[test]
fn the_version_decides_the_size_of_a_redistributor() {
    for (version, size) in [(0, 0x2_0000), (3, 0x2_0000), (4, 0x4_0000)] {
        let read = build(&[gicd(0x800_0000, version), first().bytes()])
            .read()
            .unwrap();
        let gic = &read.platform.gic;
        assert_eq!((gic.redistributors[0].size, gic.stride), (size, Some(size)));
        assert_eq!(read.notes.gic_version, version);
    }
    for version in [1, 5, 255] {
        refused_at(
            &build(&[gicd(0x800_0000, version), first().bytes()]),
            Table::Madt,
            44 + 20,
        );
    }
}

#[test]
fn there_is_one_distributor() {
    refused_at(&build(&[first().bytes()]), Table::Madt, 44 + 80);
    let two = [gicd(0x800_0000, 3), first().bytes(), gicd(0x900_0000, 3)];
    refused_at(&build(&two), Table::Madt, 44 + 24 + 80 + 8);
    let mut based = gicd(0x800_0000, 3);
    based[16] = 32;
    refused_at(&build(&[based, first().bytes()]), Table::Madt, 44 + 16);
    let in_ram = [gicd(RAM.base + 0x1_0000, 3), first().bytes()];
    refused_at(&build(&in_ram), Table::Madt, 44 + 8);
}

#[test]
fn translation_services_are_noted() {
    let all: Vec<_> = (0..20).map(|n| its(0x1000_0000 + n * 0x2_0000)).collect();
    let mut structures = vec![gicd(0x800_0000, 3), first().bytes()];
    structures.extend(all);
    let notes = build(&structures).read().unwrap().notes;
    assert_eq!(
        (notes.its.len(), notes.its_ignored),
        (platform::claims::MAX_ITS, 4)
    );
    structures[2] = its(0x800_0000);
    refused_at(&build(&structures), Table::Madt, 44 + 24 + 80 + 8);
}

#[test]
fn the_maintenance_interrupt_is_common() {
    let with = |gicc: Gicc, maintenance| Gicc {
        maintenance,
        ..gicc
    };
    let read = |a, b| pair(with(first(), a), with(second(), b)).read();
    assert_eq!(read(24, 24).unwrap().platform.gic.maintenance, 24);
    let none = read(0, 0).unwrap();
    assert_eq!(none.platform.gic.maintenance, 25);
    assert!(none.notes.maintenance_assumed);
    for (a, b) in [(24, 25), (25, 0), (0, 25), (25, 15), (25, 32), (25, 1056)] {
        let machine = pair(with(first(), a), with(second(), b));
        refused_at(&machine, Table::Madt, gicc_at(1) + 56);
    }
}

#[test]
fn structures_have_the_length_of_their_type() {
    for length in [76, 80, 82, 255] {
        let cpu = Gicc { length, ..first() };
        build(&[gicd(0x800_0000, 3), cpu.bytes()]).read().unwrap();
    }
    // Structures of irrelevant types are skipped.
    let unknown = vec![0x7f, 3, 0];
    build(&[unknown, gicd(0x800_0000, 3), first().bytes(), vec![0, 2]])
        .read()
        .unwrap();
    for (kind, length) in [(0, 0), (0, 1), (0xb, 75), (0xc, 23), (0xe, 15), (0xf, 19)] {
        let mut wrong = vec![0; usize::from(length).max(2)];
        wrong[..2].copy_from_slice(&[kind, length]);
        let machine = build(&[wrong, gicd(0x800_0000, 3), first().bytes()]);
        refused_at(&machine, Table::Madt, 45);
    }
    let machine = build(&[gicd(0x800_0000, 3), first().bytes(), vec![0x7f, 4, 0]]);
    refused_at(&machine, Table::Madt, 44 + 24 + 80 + 1);
}
