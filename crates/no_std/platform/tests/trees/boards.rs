// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads trees of boards, for features that QEMU's tree lacks. `bus.dtb` is a short version of an
//! Armada 3700's tree: its devices are on a bus that has other addresses.

use platform::{Enable, Platform, Report, Room, Timer, Uart, UartKind};

use super::{cells, grown, read, refused, region, with, word};

const BUS: &[u8] = include_bytes!("../bus.dtb");
/// QEMU's tree, with interrupts of 4 cells, and the timer's interrupts reordered in `interrupts-extended`.
const ODD: &[u8] = include_bytes!("../../../../../tests/trees/odd.dtb");

#[test]
fn addresses_are_those_of_cpus() {
    let platform = read(BUS).unwrap();
    assert_eq!(platform.gic.distributor, region(0xd1d0_0000, 0x1_0000));
    assert_eq!(platform.gic.redistributors, [region(0xd1d4_0000, 0x4_0000)]);
    let (kind, base) = (UartKind::Armada3700, 0xd001_2000);
    assert_eq!(platform.uart, Some(Uart { kind, base }));
    assert_eq!(*platform.reserved, [region(0x400_0000, 0x20_0000)]);
    // The UART is in the second of the bus's windows.
    let far = with(BUS, &cells(&[0x1_2000, 0x18]), &cells(&[0x8000_0100, 0x18]));
    assert_eq!(
        read(&far).unwrap().uart.map(|uart| uart.base),
        Some(0x1_0000_0100)
    );
    // The UART is in no range, so CPUs can't reach it.
    let lost = with(BUS, &cells(&[0x1_2000, 0x18]), &cells(&[0x7000_0000, 0x18]));
    assert_eq!(read(&lost).unwrap().uart, None);
}

#[test]
fn interrupts_have_as_many_cells_as_the_gic_says_and_go_by_their_names() {
    let platform = read(ODD).unwrap();
    let hyp = Some(26);
    assert_eq!(
        platform.timer,
        Timer {
            virt: 27,
            phys: 30,
            hyp
        }
    );
    assert_eq!(platform.gic.maintenance, 25);
    // These are the same names in another order.
    let (usual, other) = (
        b"hyp-phys\0virt\0sec-phys\0phys\0",
        b"sec-phys\0virt\0hyp-phys\0phys\0",
    );
    let other = with(ODD, usual, other);
    assert_eq!(read(&other).unwrap().timer.hyp, Some(29));
    let without = with(ODD, b"hyp-phys\0virt", b"hyp-virt\0virt");
    assert_eq!(read(&without).unwrap().timer.hyp, None);
    // Other widths: too few cells, too many, and a number that does not divide the lists.
    let strings = u32::from_be_bytes(ODD[12..16].try_into().unwrap()) as usize;
    let name = ODD
        .windows(17)
        .position(|text| text == b"#interrupt-cells\0")
        .unwrap();
    let property = |width| cells(&[3, 4, (name - strings) as u32, width]);
    for (width, property_of) in [
        (2, "interrupt-controller: property '#interrupt-cells'"),
        (9, "interrupt-controller: property '#interrupt-cells'"),
        (5, "timer: property 'interrupts-extended'"),
    ] {
        let tree = with(ODD, &property(4), &property(width));
        refused(&tree, &format!("{property_of} is missing or malformed"));
    }
}

#[test]
fn what_is_in_place_of_a_gicv3_is_named() {
    for (name, said) in [
        ("arm,gic-v5", "a GICv5, and Rouse needs a GICv3 or GICv4"),
        ("arm,pl390\0", "a GICv1, and Rouse needs a GICv2 or later"),
        (
            "apple,aic\0",
            "'apple,aic', and Rouse needs a GICv2 or later",
        ),
    ] {
        let tree = with(BUS, b"arm,gic-v3", name.as_bytes());
        refused(&tree, &format!("the interrupt controller is {said}"));
    }
}

#[test]
fn registers_are_where_they_can_be() {
    let distributor = |base| {
        with(
            BUS,
            &cells(&[0x1d0_0000, 0x1_0000]),
            &cells(&[base, 0x1_0000]),
        )
    };
    let frames = |base| {
        with(
            BUS,
            &cells(&[0x1d4_0000, 0x4_0000]),
            &cells(&[base, 0x4_0000]),
        )
    };
    let uart = |base| with(BUS, &cells(&[0x1_2000, 0x18]), &cells(&[base, 0x18]));
    let gic = "interrupt-controller@1d00000: reg";
    for (tree, said) in [
        (
            distributor(0x1d0_1000),
            format!("{gic}: 0xd1d01000 is not aligned to 64 KiB"),
        ),
        (
            frames(0x1d4_0010),
            format!("{gic}: 0xd1d40010 is not aligned to 64 KiB"),
        ),
        (
            frames(0x1d0_0000),
            format!("{gic}: 0xd1d00000 is in another device's registers"),
        ),
        (
            uart(0x1_2002),
            "serial@12000: reg: 0xd0012002 is not aligned to its accesses".into(),
        ),
        (
            uart(0x1d4_0000),
            "serial@12000: reg: 0xd1d40000 is in another device's registers".into(),
        ),
    ] {
        refused(&tree, &said);
    }
    let bus = |parent: [u32; 2]| {
        let own = cells(&[0, 0, 0xd000_0000, 0x200_0000]);
        with(BUS, &own, &cells(&[0, parent[0], parent[1], 0x200_0000]))
    };
    refused(
        &bus([0, 0x1000_0000]),
        &format!("{gic}: 0x11d00000 is in RAM"),
    );
    let high = bus([0x100, 0]);
    assert!(read(&high).is_ok());
    // The CPU has only 40 bits of physical addresses.
    let said = "0x10001d00000 ends above the physical addresses";
    let error = Platform::from_fdt(&high, Room::new().below(1 << 40)).unwrap_err();
    assert_eq!(error.to_string(), format!("device tree: {gic}: {said}"));
    assert_eq!(Report::from_fdt(&high, 1 << 40).uart, None);
    refused(
        &bus([0xffff_ffff, 0xff00_0000]),
        "interrupt-controller: property 'reg' is missing or malformed",
    );
}

#[test]
fn a_spin_table_needs_a_place() {
    let on = with(BUS, b"disabled\0", b"okay\0\0\0\0\0");
    let at = |high, low| with(&on, &cells(&[0x77, 0x77]), &cells(&[high, low]));
    let enable = read(&at(0, 0x1000)).map(|platform| platform.cpus[2].enable);
    assert_eq!(enable, Ok(Enable::SpinTable(0x1000)));
    refused(
        &at(0, 0),
        "cpu: spin-table without cpu-release-addr, which a boot loader writes",
    );
    refused(
        &at(0, 0x1004),
        "cpu@2: reg: 0x1004 is not aligned to its accesses",
    );
    refused(
        &at(1 << 16, 0),
        "cpu@2: reg: 0x1000000000000 ends above the physical addresses",
    );
    let other = with(&at(0, 0x1000), b"spin-table\0", b"spin-bench\0");
    refused(
        &other,
        "cpu: enable-method is neither 'psci' nor 'spin-table'",
    );
}

#[test]
fn names_have_any_length_and_spelling() {
    let whole = read(BUS).unwrap();
    let long = format!("{}\0", "x".repeat(300));
    for name in [long.as_bytes(), b"\0", b" !/\xff\0", b"UPPER~case\0"] {
        // A property of the root, in front of all others.
        let property = cells(&[3, 0, word(BUS, 32)]);
        let fields = [(4, 12 + name.len()), (12, 12), (32, name.len()), (36, 12)];
        let tree = [BUS, name].concat();
        let tree = grown(&tree, word(BUS, 8) as usize + 8, property, &fields);
        assert_eq!(read(&tree).unwrap(), whole);
    }
}
