// SPDX-License-Identifier: MIT OR Apache-2.0
//! RSDP, XSDT, FADT, GTDT and SPCR whose lengths and checksums are right: valid contents, and
//! invalid ones.

use crate::tables::{
    self, FADT, Gicc, MachineTables, RAM, RSDP, XSDT, fadt, gtdt, pair, refused, refused_at, small,
};
use acpi::{Error, Ram, Table};
use platform::{Conduit, Enable, Region, Room, UartKind};

fn first() -> Gicc {
    Gicc::new(0x0, 0xb8_0014_0000)
}

fn second() -> Gicc {
    Gicc::new(0x1_0000, 0xb8_0018_0000)
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
    // Without PSCI, a second CPU can't be started.
    refused_at(&read(0), Table::Madt, 44 + 24 + 80 + 68);
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
    let fadt = |revision, minor, length, flags| {
        let mut machine = small();
        let fields: [(usize, &[u8]); 2] = [(129, &[flags]), (131, &[minor])];
        machine.fadt = tables::table(b"FACP", revision, length, &fields);
        machine
    };
    fadt(5, 1, 268, 1).read().unwrap();
    fadt(6, 0, 276, 1).read().unwrap();
    // The upper half of the minor version is the letter of an erratum.
    refused_at(&fadt(5, 0x10, 268, 0), Table::Fadt, 131);
    refused_at(&fadt(4, 1, 268, 0), Table::Fadt, 8);
    // An older or shorter table is accepted if it has the flags.
    for (revision, minor, length, defects) in [
        (5, 0x10, 268, 1),
        (4, 1, 268, 1),
        (5, 1, 267, 1),
        (6, 0, 275, 1),
        (3, 0, 244, 2),
    ] {
        let read = fadt(revision, minor, length, 1).read().unwrap();
        assert_eq!(read.notes.tolerated.count, defects, "{revision}");
        assert_eq!(read.platform.psci, Some(Conduit::Smc));
    }
}

#[test]
fn timers_have_interrupts_of_their_own() {
    let with = |gsivs| {
        let mut machine = small();
        machine.gtdt = gtdt(gsivs);
        machine
    };
    with([16, 31, 17]).read().unwrap();
    let timer = with([30, 27, 0]).read().unwrap().platform.timer;
    assert_eq!(timer.hyp, None);
    for (gsivs, offset) in [
        ([15, 27, 26], 56),
        ([30, 32, 26], 64),
        ([30, 27, 15], 72),
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

fn console(interface: u8, width: u8, access: u8, address: u64) -> MachineTables {
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
        assert_eq!(read.notes.uart_type, Some((acpi::Table::Spcr, interface)));
        read.platform.uart.map(|uart| uart.kind)
    };
    // The access size that firmware states for a PL011 is ignored.
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
    assert_eq!(kind(0x0c, 32, 3), Some(UartKind::Imx));
    for interface in [0x11, 0x13] {
        assert_eq!(kind(interface, 32, 3), Some(UartKind::Geni));
    }
    assert_eq!(kind(0x0f, 8, 1), None);
    // With address 0, there is a table but no console.
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
        tables::fix_checksum(&mut rsdp, 32);
        assert_eq!(with(rsdp).is_ok(), good, "{length}");
    }
    let mut rsdp = tables::rsdp(2);
    rsdp[24..32].fill(0);
    tables::fix_checksum(&mut rsdp, 32);
    assert!(
        with(rsdp)
            .unwrap_err()
            .starts_with("ACPI: RSDP: offset 0x18: ")
    );
    let mut rsdp = tables::rsdp(2);
    rsdp[24..32].copy_from_slice(&FADT.to_le_bytes());
    tables::fix_checksum(&mut rsdp, 32);
    let error = with(rsdp).unwrap_err();
    assert_eq!(
        error,
        "ACPI: XSDT: offset 0x0: expected the table's signature, found 0x46414350"
    );
}

#[test]
fn entries_of_the_xsdt() {
    // A zero entry is unused.
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
    let error = acpi::read(&small().memory(), RSDP, &Ram::new(), "", &mut Room::new()).unwrap_err();
    let region = Region { base: 0, size: 0 };
    assert!(matches!(error, Error::Ram { region: r, .. } if r == region));
}

#[test]
fn tables_are_listed_even_if_one_is_damaged() {
    let machine = small();
    let mut memory = machine.memory();
    let listed = acpi::list(&memory, RSDP);
    let signatures: Vec<_> = listed.iter().map(|table| &table.signature).collect();
    assert_eq!(*signatures[0], *b"XSDT");
    for signature in [b"FACP", b"APIC", b"GTDT", b"SPCR"] {
        assert!(signatures.contains(&signature), "{signatures:x?}");
    }
    assert!(listed.iter().all(|table| table.sound));
    let madt = listed.iter().find(|table| table.signature == *b"APIC");
    let place = madt.unwrap().place;
    memory.at(place.base)[20] ^= 1;
    let listed = acpi::list(&memory, RSDP);
    let damaged: Vec<_> = listed.iter().filter(|table| !table.sound).collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].place, place);
    // The console is found nevertheless.
    let uart = machine.read().unwrap().platform.uart;
    assert!(uart.is_some());
    assert_eq!(acpi::console(&memory, RSDP, platform::claims::END), uart);
}

/// Builds a DBG2 with `ports`: type, subtype and address.
fn dbg2(ports: &[(u16, u16, u64)]) -> Vec<u8> {
    let devices = ports.iter().flat_map(|(kind, subtype, address)| {
        let gas = [0, 32, 0, 3];
        tables::bytes(
            22 + 12 + 4 + 2,
            &[
                (1, &40_u16.to_le_bytes()),
                (3, &[1]),
                (4, &[2, 0, 38, 0]),
                (12, &kind.to_le_bytes()),
                (14, &subtype.to_le_bytes()),
                (18, &[22, 0, 34, 0]),
                (22, &gas),
                (26, &address.to_le_bytes()),
                (38, b"."),
            ],
        )
    });
    let devices: Vec<u8> = devices.collect();
    let fields: [(usize, &[u8]); 3] = [(36, &[44]), (40, &[ports.len() as u8]), (44, &devices)];
    tables::table(b"DBG2", 0, 44 + devices.len(), &fields)
}

#[test]
fn without_an_spcr_the_dbg2_names_the_console() {
    let mut machine = small();
    // Neither a USB port nor, further down, a serial port of an unknown type is a console.
    machine.others = vec![dbg2(&[(0x8002, 0, 0x1000), (0x8000, 3, 0x21c_0000)])];
    let base =
        |machine: &MachineTables| machine.read().unwrap().platform.uart.map(|uart| uart.base);
    assert_eq!(base(&machine), Some(0x900_0000));
    machine.spcr = None;
    let read = machine.read().unwrap();
    let uart = read.platform.uart;
    let kind = UartKind::Pl011;
    let base_address = 0x21c_0000;
    assert_eq!(
        uart,
        Some(platform::Uart {
            kind,
            base: base_address
        })
    );
    assert!(
        read.notes.to_string().ends_with(", DBG2 type 3"),
        "{}",
        read.notes
    );
    let known = acpi::console(&machine.memory(), RSDP, platform::claims::END);
    assert_eq!(known, uart);
    machine.others = vec![dbg2(&[(0x8000, 0x103, 0x21c_0000)])];
    assert_eq!(base(&machine), None);
    // If the DBG2 is wrong, the machine lacks a console and nothing else.
    for damage in [12, 36, 45] {
        let mut table = dbg2(&[(0x8000, 3, 0x21c_0000)]);
        table[damage] = 0xff;
        tables::seal(&mut table);
        machine.others = vec![table];
        let found = machine.memory().describe().unwrap();
        assert_eq!(found.platform.uart.is_some(), damage == 12);
        assert_eq!(found.notes.wrong_console.is_some(), damage != 12);
    }
}

/// A wrong SPCR is reported, and the DBG2 is used nevertheless.
#[test]
fn with_a_wrong_spcr_the_dbg2_names_the_console() {
    let mut machine = small();
    machine.others = vec![dbg2(&[(0x8000, 3, 0x21c_0000)])];
    let mut memory = machine.memory();
    memory.at(tables::SPCR)[40] ^= 1;
    let found = memory.describe().unwrap();
    let base = found.platform.uart.map(|uart| uart.base);
    assert_eq!(base, Some(0x21c_0000));
    let text = found.notes.to_string();
    let said = ", a console not used: ACPI: SPCR: offset 0x9: expected a checksum";
    assert!(
        text.contains(said) && text.ends_with(", DBG2 type 3"),
        "{text}"
    );
    let known = acpi::console(&memory, RSDP, platform::claims::END);
    assert_eq!(known, found.platform.uart);
}
