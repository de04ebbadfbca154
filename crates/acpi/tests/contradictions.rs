// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables whose lengths and checksums are right and which say what can't be.

mod tables;

use acpi::{Error, Ram, Table};
use platform::{Conduit, Enable, Region, UartKind};
use tables::{
    FADT, Gicc, Machine, RAM, RSDP, XSDT, fadt, gicd, gicr, gtdt, its, madt, pair, small,
};

/// The machine is refused with this message.
#[track_caller]
fn refused(machine: &Machine, expected: &str) {
    assert_eq!(machine.read().unwrap_err().to_string(), expected);
}

/// The machine is refused because of what stands at `offset` of `table`.
#[track_caller]
fn refused_at(machine: &Machine, table: Table, offset: usize) {
    match machine.read() {
        Err(Error::Defect {
            table: t,
            offset: o,
            ..
        }) => assert_eq!((t, o), (table, offset)),
        other => panic!("{other:?}"),
    }
}

/// Offset of the `n`-th GICC of [`pair`].
const fn nth(n: usize) -> usize {
    44 + 24 + 80 * n
}

fn first() -> Gicc {
    Gicc::new(0x0, 0xb8_0014_0000)
}

fn second() -> Gicc {
    Gicc::new(0x1_0000, 0xb8_0018_0000)
}

fn of(structures: &[Vec<u8>]) -> Machine {
    Machine::new(madt(structures))
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
    // What an unusable one says is nothing to go by.
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
    refused_at(&pair(first(), both), Table::Madt, nth(1) + 12);
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
        refused_at(&pair(first(), wrong), Table::Madt, nth(1) + 68);
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
        refused_at(&pair(first(), wrong), Table::Madt, nth(1) + 60);
    }
    // With a range described, a CPU's own address is to be ignored.
    let description = of(&[
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
        let machine = of(&[gicd(0x800_0000, 3), first().bytes(), range]);
        assert!(machine.read().is_err());
    }
    let twice = gicr(0x80a_0000, 0x4_0000);
    let machine = of(&[gicd(0x800_0000, 3), first().bytes(), twice.clone(), twice]);
    refused(
        &machine,
        "ACPI: MADT (signature APIC): offset 0xa8: \
         expected registers that overlap no other device's, found 0x80a0000",
    );
}

#[test]
fn more_ranges_than_fit_are_refused() {
    let ranges = (0..65).map(|n| gicr(0x1000_0000 + n * 0x2_0000, 0x2_0000));
    let mut structures = vec![gicd(0x800_0000, 3), first().bytes()];
    structures.extend(ranges);
    refused_at(&of(&structures), Table::Madt, 44 + 24 + 80 + 64 * 16 + 4);
    structures.pop();
    assert_eq!(
        of(&structures)
            .read()
            .unwrap()
            .platform
            .gic
            .redistributors
            .len(),
        64
    );
}

#[test]
fn the_version_decides_the_size_of_a_redistributor() {
    for (version, size) in [(0, 0x2_0000), (3, 0x2_0000), (4, 0x4_0000)] {
        let read = of(&[gicd(0x800_0000, version), first().bytes()])
            .read()
            .unwrap();
        let gic = &read.platform.gic;
        assert_eq!((gic.redistributors[0].size, gic.stride), (size, Some(size)));
        assert_eq!(read.notes.gic_version, version);
    }
    for version in [1, 2, 5, 255] {
        refused_at(
            &of(&[gicd(0x800_0000, version), first().bytes()]),
            Table::Madt,
            44 + 20,
        );
    }
}

#[test]
fn there_is_one_distributor() {
    refused_at(&of(&[first().bytes()]), Table::Madt, 44 + 80);
    let two = [gicd(0x800_0000, 3), first().bytes(), gicd(0x900_0000, 3)];
    refused_at(&of(&two), Table::Madt, 44 + 24 + 80 + 8);
    let mut based = gicd(0x800_0000, 3);
    based[16] = 32;
    refused_at(&of(&[based, first().bytes()]), Table::Madt, 44 + 16);
    let in_ram = [gicd(RAM.base + 0x1_0000, 3), first().bytes()];
    refused_at(&of(&in_ram), Table::Madt, 44 + 8);
}

#[test]
fn translation_services_are_noted() {
    let all: Vec<_> = (0..20).map(|n| its(0x1000_0000 + n * 0x2_0000)).collect();
    let mut structures = vec![gicd(0x800_0000, 3), first().bytes()];
    structures.extend(all);
    let notes = of(&structures).read().unwrap().notes;
    assert_eq!((notes.its.len(), notes.its_ignored), (acpi::MAX_ITS, 4));
    structures[2] = its(0x800_0000);
    refused_at(&of(&structures), Table::Madt, 44 + 24 + 80 + 8);
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
        refused_at(&machine, Table::Madt, nth(1) + 56);
    }
}

#[test]
fn structures_have_the_length_of_their_type() {
    for length in [76, 80, 82, 255] {
        let cpu = Gicc { length, ..first() };
        of(&[gicd(0x800_0000, 3), cpu.bytes()]).read().unwrap();
    }
    // Types that mean nothing here are passed over.
    let unknown = vec![0x7f, 3, 0];
    of(&[unknown, gicd(0x800_0000, 3), first().bytes(), vec![0, 2]])
        .read()
        .unwrap();
    for (kind, length) in [(0, 0), (0, 1), (0xb, 75), (0xc, 23), (0xe, 15), (0xf, 19)] {
        let mut wrong = vec![0; usize::from(length).max(2)];
        wrong[..2].copy_from_slice(&[kind, length]);
        let machine = of(&[wrong, gicd(0x800_0000, 3), first().bytes()]);
        refused_at(&machine, Table::Madt, 45);
    }
    let machine = of(&[gicd(0x800_0000, 3), first().bytes(), vec![0x7f, 4, 0]]);
    refused_at(&machine, Table::Madt, 44 + 24 + 80 + 1);
}

#[test]
fn psci_and_its_conduit() {
    let read = |flags| {
        let mut machine = small();
        machine.fadt = fadt(flags);
        machine
    };
    assert_eq!(read(1).read().unwrap().platform.psci, Some(Conduit::Smc));
    assert_eq!(read(3).read().unwrap().platform.psci, Some(Conduit::Hvc));
    refused_at(&read(2), Table::Fadt, 129);
    // Without PSCI there is no way to start a second CPU.
    refused_at(&read(0), Table::Madt, nth(1) + 68);
    let mut alone = pair(
        Gicc {
            parked: 0x8000_1000,
            ..first()
        },
        second().off(),
    );
    alone.fadt = fadt(0);
    let description = alone.read().unwrap();
    assert_eq!(description.platform.cpus[0].enable, Enable::Held);
    assert_eq!(description.platform.psci, None);
    assert_eq!(description.notes.parked, 1);
}

#[test]
fn a_fadt_without_the_flags_is_refused() {
    let fadt = |revision, minor, length| {
        let mut machine = small();
        let fields: [(usize, &[u8]); 2] = [(129, &[1]), (131, &[minor])];
        machine.fadt = tables::table(b"FACP", revision, length, &fields);
        machine
    };
    fadt(5, 1, 268).read().unwrap();
    fadt(6, 0, 276).read().unwrap();
    // The upper half of the minor version is an erratum's letter.
    refused_at(&fadt(5, 0x10, 268), Table::Fadt, 131);
    refused_at(&fadt(4, 1, 268), Table::Fadt, 8);
    refused_at(&fadt(5, 1, 267), Table::Fadt, 4);
    refused_at(&fadt(6, 0, 275), Table::Fadt, 4);
}

#[test]
fn timers_have_interrupts_of_their_own() {
    let with = |gsivs| {
        let mut machine = small();
        machine.gtdt = gtdt(gsivs);
        machine
    };
    with([16, 31, 17]).read().unwrap();
    for (gsivs, offset) in [
        ([15, 27, 26], 56),
        ([30, 32, 26], 64),
        ([30, 27, 0], 72),
        ([30, 30, 26], 64),
        ([30, 27, 27], 72),
        ([25, 27, 26], 56),
        ([30, 27, 25], 72),
    ] {
        refused_at(&with(gsivs), Table::Gtdt, offset);
    }
    let mut machine = small();
    machine.gtdt[8] = 1;
    tables::seal(&mut machine.gtdt);
    refused_at(&machine, Table::Gtdt, 8);
    machine.gtdt = gtdt([30, 27, 26]);
    machine.gtdt.truncate(96);
    machine.gtdt[8] = 2;
    tables::seal(&mut machine.gtdt);
    machine.read().unwrap();
}

fn console(interface: u8, width: u8, access: u8, address: u64) -> Machine {
    let mut machine = small();
    machine.spcr = Some(tables::spcr(interface, width, access, address));
    machine
}

#[test]
fn consoles_by_type() {
    let kind = |interface, width, access| {
        let read = console(interface, width, access, 0x900_0000)
            .read()
            .unwrap();
        assert_eq!(read.notes.uart_type, Some(interface));
        read.platform.uart.map(|uart| uart.kind)
    };
    // What firmware says of a PL011's accesses is not believed.
    for interface in [0x03, 0x0d, 0x0e] {
        assert_eq!(kind(interface, 8, 1), Some(UartKind::Pl011));
    }
    for interface in [0x00, 0x01, 0x12] {
        for (bits, access, shift, width) in [
            (8, 0, 0, 1),
            (8, 1, 0, 1),
            (16, 1, 1, 1),
            (32, 1, 2, 1),
            (32, 3, 2, 4),
            (64, 3, 3, 4),
        ] {
            let expected = UartKind::Ns16550 { shift, width };
            assert_eq!(kind(interface, bits, access), Some(expected));
        }
    }
    assert_eq!(kind(0x0f, 8, 1), None);
    // Address 0: there is a table and no console.
    assert_eq!(console(0, 8, 1, 0).read().unwrap().platform.uart, None);
    let mut none = small();
    none.spcr = None;
    let none = none.read().unwrap();
    assert_eq!((none.platform.uart, none.notes.uart_type), (None, None));
}

#[test]
fn consoles_that_can_not_be() {
    refused_at(&console(0, 12, 1, 0x900_0000), Table::Spcr, 41);
    refused_at(&console(0, 0, 1, 0x900_0000), Table::Spcr, 41);
    refused_at(&console(0, 16, 2, 0x900_0000), Table::Spcr, 43);
    refused_at(&console(0, 64, 4, 0x900_0000), Table::Spcr, 43);
    refused_at(&console(0, 8, 3, 0x900_0000), Table::Spcr, 43);
    for address in [0x900_0002, 0x800_0000, 0x80a_8000, RAM.base, 1 << 60] {
        refused_at(&console(3, 32, 3, address), Table::Spcr, 44);
    }
    for (offset, value) in [(8, 1), (40, 1), (42, 4)] {
        let mut machine = console(0, 8, 1, 0x900_0000);
        let spcr = machine.spcr.as_mut().unwrap();
        spcr[offset] = value;
        tables::seal(spcr);
        refused_at(&machine, Table::Spcr, offset);
    }
}

#[test]
fn tables_are_listed_once() {
    let machine = small();
    for table in [&machine.fadt, &machine.madt, &machine.gtdt] {
        let mut twice = machine.clone();
        twice.others.push(table.clone());
        refused(
            &twice,
            "ACPI: XSDT: offset 0x44: expected a table not yet listed, found 0x50000",
        );
    }
}

#[test]
fn roots() {
    let with = |rsdp: Vec<u8>| {
        let mut memory = small().memory();
        *memory.at(RSDP) = rsdp;
        memory.read().map_err(|error| error.to_string())
    };
    let old = with(tables::rsdp(1)).unwrap_err();
    assert_eq!(
        old,
        "ACPI: RSDP: offset 0xf: expected revision 2 or later, found 0x1"
    );
    with(tables::rsdp(3)).unwrap();
    for (length, revision, good) in [(35, 3, false), (37, 2, false), (40, 3, true)] {
        let mut rsdp = tables::rsdp(revision);
        rsdp.resize(40, 0);
        rsdp[20] = length;
        tables::correct(&mut rsdp, 32);
        assert_eq!(with(rsdp).is_ok(), good, "{length}");
    }
    let mut rsdp = tables::rsdp(2);
    rsdp[24..32].fill(0);
    tables::correct(&mut rsdp, 32);
    assert!(
        with(rsdp)
            .unwrap_err()
            .starts_with("ACPI: RSDP: offset 0x18: ")
    );
    let mut rsdp = tables::rsdp(2);
    rsdp[24..32].copy_from_slice(&FADT.to_le_bytes());
    tables::correct(&mut rsdp, 32);
    let error = with(rsdp).unwrap_err();
    assert_eq!(
        error,
        "ACPI: XSDT: offset 0x0: expected the table's signature, found 0x46414350"
    );
}

#[test]
fn entries_of_the_xsdt() {
    // An entry that is zero is unused.
    let mut memory = small().memory();
    memory.at(XSDT).extend([0; 8]);
    tables::seal(memory.at(XSDT));
    memory.read().unwrap();
    memory.at(XSDT)[68..76].copy_from_slice(&0xdead_0000_u64.to_le_bytes());
    tables::seal(memory.at(XSDT));
    let error = memory.read().unwrap_err().to_string();
    let expected = "ACPI: XSDT: offset 0x44: \
        expected the address of a readable table, found 0xdead0000";
    assert_eq!(error, expected);
}

#[test]
fn there_must_be_ram() {
    let error = acpi::read(&small().memory(), RSDP, &Ram::new(), "").unwrap_err();
    let region = Region { base: 0, size: 0 };
    assert!(matches!(error, Error::Ram { region: r, .. } if r == region));
}
