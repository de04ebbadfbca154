// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device trees with impossible contents.

use platform::guest::GuestTree;
use platform::{Cpu, Enable, GicV2, MAX_CPUS, Platform, Region, Room, UartKind, Watchdog};

use super::{cells, grown, guest_of, read, refused, region, with, word, written};

/// Returns a tree of two CPUs, with a serial port that can easily be changed to a 16550.
fn tree() -> Vec<u8> {
    tree_of(&[0x1_0001_0000, 0x3])
}

fn tree_of(cpus: &[u64]) -> Vec<u8> {
    written(&guest_of(cpus))
}

/// Returns the tree with `properties` inserted at the front of the node whose first property is
/// `compatible` = `of`.
fn with_properties(of: &str, properties: &[(&str, Vec<u8>)]) -> Vec<u8> {
    added(tree(), of, properties)
}

/// Inserts `properties` into `tree`, in front of `compatible` = `of`.
fn added(mut tree: Vec<u8>, of: &str, properties: &[(&str, Vec<u8>)]) -> Vec<u8> {
    for (name, value) in properties {
        let mut property = cells(&[3, value.len() as u32, tree.len() as u32 - word(&tree, 12)]);
        tree.extend(name.bytes().chain([0]));
        property.extend(value);
        property.resize(property.len().next_multiple_of(4), 0);
        let text = tree
            .windows(of.len())
            .position(|window| window == of.as_bytes());
        // Total size, offset and size of the strings, size of the structure.
        let (more, name) = (property.len(), name.len() + 1);
        let fields = [(4, more + name), (12, more), (32, name), (36, more)];
        tree = grown(&tree, text.unwrap() - 12, property, &fields);
    }
    tree
}

#[test]
fn an_mpidr_is_an_affinity_and_one_cpus() {
    let expected = "cpu: property 'reg' is missing or malformed";
    // The last CPU's `reg`, the end of its node, and the end of the CPUs' node.
    let cpu = |high, low| cells(&[high, low, 2, 2]);
    for (high, low) in [(0, 0x8000_0003), (0x100, 3)] {
        refused(&with(&tree(), &cpu(0, 3), &cpu(high, low)), expected);
    }
    refused(
        &with(&tree(), &cpu(0, 3), &cpu(1, 0x1_0000)),
        "cpu: reg: two CPUs have MPIDR 0x100010000",
    );
}

#[test]
fn a_timers_interrupts_are_ppis_and_its_own() {
    let expected = "timer: property 'interrupts' is missing or malformed";
    // PPI 11 is INTID 27.
    for other in [
        [0, 11, 4],
        [1, 16, 4],
        [1, u32::MAX, 4],
        [1, 14, 4],
        [2, 11, 4],
    ] {
        refused(
            &with(&tree(), &cells(&[1, 11, 4]), &cells(&other)),
            expected,
        );
    }
}

#[test]
fn the_maintenance_interrupt_is_a_ppi_and_its_own() {
    let expected = "interrupt-controller: property 'interrupts' is missing or malformed";
    for other in [[0, 9, 4], [1, 16, 4], [1, u32::MAX, 4], [1, 11, 4]] {
        refused(
            &with_properties("arm,gic-v3", &[("interrupts", cells(&other))]),
            expected,
        );
    }
    let good = with_properties("arm,gic-v3", &[("interrupts", cells(&[1, 8, 4]))]);
    assert_eq!(read(&good).unwrap().gic.maintenance, 24);
}

#[test]
fn a_stride_is_at_least_two_frames() {
    let expected = "interrupt-controller: property 'redistributor-stride' is missing or malformed";
    for other in [0, 0x1_0000, 0x2_8000] {
        let stride = [("redistributor-stride", cells(&[0, other]))];
        refused(&with_properties("arm,gic-v3", &stride), expected);
    }
    let stride = [("redistributor-stride", cells(&[0, 0x4_0000]))];
    let good = with_properties("arm,gic-v3", &stride);
    assert_eq!(read(&good).unwrap().gic.stride, Some(0x4_0000));
}

#[test]
fn a_16550_of_unknown_form_is_no_console() {
    let uart = |shift, width| {
        let form = [
            ("reg-shift", cells(&[shift])),
            ("reg-io-width", cells(&[width])),
            ("compatible", b"ns16550a\0".to_vec()),
        ];
        let tree = with_properties("arm,pl011", &form);
        read(&tree).unwrap().uart.map(|uart| uart.kind)
    };
    assert_eq!(uart(2, 4), Some(UartKind::Ns16550 { shift: 2, width: 4 }));
    assert_eq!(uart(2, 2), None);
    assert_eq!(uart(256, 4), None);
    assert_eq!(uart(64, 1), None);
}

/// Linux takes `okay`, `ok` and nothing else.
#[test]
fn a_uart_that_is_not_okay_is_no_console() {
    let console = |of: &str, status: &str| {
        let status = [("status", format!("{status}\0").into_bytes())];
        let tree = with_properties(of, &status);
        let report = platform::Report::from_fdt(&tree, platform::claims::END);
        let uart = read(&tree).unwrap().uart;
        assert_eq!(report.uart, uart);
        uart.is_some()
    };
    for status in ["okay", "ok"] {
        assert!(console("arm,pl011", status), "{status}");
    }
    for status in [
        "", "disabled", "reserved", "fail", "fail-sss", "okay2", "bogus",
    ] {
        assert!(!console("arm,pl011", status), "{status}");
    }
    let empty = with_properties("arm,pl011", &[("status", Vec::new())]);
    assert_eq!(read(&empty).unwrap().uart, None);
    // A UART on a bus that is off; the root stands for any bus here.
    assert!(!console("rouse,guest", "disabled"));
}

/// Devicetree Specification 0.4, 3.8.1: a `disabled` CPU waits to be started.
#[test]
fn a_cpu_that_waits_is_one() {
    let cpus = |status: &str| {
        let status = [("status", format!("{status}\0").into_bytes())];
        let tree = added_cpu(&status);
        read(&tree).unwrap().cpus.len()
    };
    for (status, expected) in [
        ("okay", 2),
        ("disabled", 2),
        ("reserved", 2),
        ("fail", 1),
        ("fail-sss", 1),
    ] {
        assert_eq!(cpus(status), expected, "{status}");
    }
    // Without a method, nothing starts that CPU; the other CPU is held.
    let waits = added_cpu(&[("status", b"disabled\0".to_vec())]);
    let held = with(&waits, b"enable-method\0", b"enable-nothing");
    assert_eq!(read(&held).unwrap().cpus.len(), 1);
}

/// Returns the tree with `properties` in the first CPU's node.
fn added_cpu(properties: &[(&str, Vec<u8>)]) -> Vec<u8> {
    added(tree(), "arm,armv8", properties)
}

/// Returns a tree with a GICv2 that has these registers besides the distributor's.
fn version2_of(cpus: &[u64], gicc: Region, virt: Option<[Region; 2]>) -> Vec<u8> {
    written(&GuestTree {
        distributor: region(0xff84_1000, 0x1000),
        version2: Some(GicV2 { gicc, virt }),
        redistributors: &[],
        ..guest_of(cpus)
    })
}

const GICC: Region = region(0xff84_2000, 0x2000);
const GICH_GICV: [Region; 2] = [region(0xff84_4000, 0x1000), region(0xff84_6000, 0x2000)];

#[test]
fn a_gicv2_needs_its_virtual_interface_for_the_hypervisor() {
    let small = [GICH_GICV[0], region(0xff84_6000, 0x1000)];
    for (virt, why) in [
        (Some(GICH_GICV), None),
        (None, Some("without GICH and GICV")),
        (Some(small), Some("without the second page of GICC or GICV")),
    ] {
        let blob = version2_of(&[0, 1], GICC, virt);
        let mut room = Box::new(Room::new());
        let platform = Platform::from_fdt(&blob, &mut room).unwrap();
        assert_eq!(platform.gic.version2, Some(GicV2 { gicc: GICC, virt }));
        assert_eq!(platform.gic.distributor.base, 0xff84_1000);
        assert!(platform.gic.redistributors.is_empty());
        let lacks = platform.lacks();
        assert_eq!(lacks.is_some(), why.is_some(), "{lacks:?}");
        assert!(
            lacks
                .zip(why)
                .is_none_or(|(lacks, why)| lacks.contains(why)),
            "{lacks:?}"
        );
    }
}

#[test]
fn a_gicv2_has_all_of_its_registers() {
    let reg = "interrupt-controller: property 'reg' is missing or malformed";
    let whole = version2_of(&[0], GICC, Some(GICH_GICV));
    let three = [0xff84_1000, 0xff84_2000, 0xff84_4000];
    let list = |bases: &[u32]| {
        let regions = bases.iter().flat_map(|&base| [0, base, 0, 0x1000]);
        ("reg", cells(&regions.collect::<Vec<_>>()))
    };
    let of = |bases: &[u32]| added(whole.clone(), "arm,cortex-a15-gic", &[list(bases)]);
    refused(&of(&three), reg);
    refused(&of(&three[..1]), reg);
    assert!(read(&of(&three[..2])).is_ok());
    refused(&version2_of(&[0], region(0xff84_2000, 0x80), None), reg);
    refused(
        &version2_of(&[0], region(0xff84_2800, 0x1000), None),
        "interrupt-controller: reg: 0xff842800 is not aligned to 4 KiB",
    );
    refused(
        &version2_of(&[0], region(0xff84_1000, 0x2000), None),
        "interrupt-controller: reg: 0xff841000 is in another device's registers",
    );
}

/// The trees of RK3576 and Amlogic S7 in mainline Linux have such sizes.
#[test]
fn a_gicv2_may_be_described_too_large_or_small() {
    for (distributor, size, read_as) in [(0x1_0000, 0x1_0000, 0x2000), (0x1000, 0x100, 0x1000)] {
        let blob = written(&GuestTree {
            distributor: region(0x2a70_1000, distributor),
            version2: Some(GicV2 {
                gicc: region(0x2a70_2000, size),
                virt: None,
            }),
            redistributors: &[],
            ..guest_of(&[0])
        });
        let gic = read(&blob).unwrap().gic;
        assert_eq!(gic.distributor, region(0x2a70_1000, 0x1000));
        assert_eq!(gic.version2.unwrap().gicc, region(0x2a70_2000, read_as));
    }
}

/// The trees of ZynqMP and Armada AP80x in mainline Linux describe such interfaces.
#[test]
fn the_last_repetition_of_a_first_page_is_next_to_the_second_page() {
    let interface = |base| region(base, 0x2_0000);
    let (gicc, gicv) = (interface(0xf902_0000), interface(0xf906_0000));
    let gich = region(0xf904_0000, 0x2_0000);
    let blob = version2_of(&[0, 1], gicc, Some([gich, gicv]));
    let found = read(&blob).unwrap().gic.version2.unwrap();
    // GICC is repeated, and GICV is not.
    let repeated = found.with_adjacent_pages(|register| match register {
        0xf902_00fc | 0xf902_f0fc | 0xf906_00fc => 0x0202_143b,
        _ => 0,
    });
    assert_eq!(repeated.gicc, region(0xf902_f000, 0x2000));
    let [_, adjacent] = repeated.virt.unwrap();
    assert_eq!(adjacent, region(0xf906_0000, 0x2000));
    let identities = |register| match register {
        0xf902_f0fc | 0xf906_00fc => 0x0202_143b,
        _ => 0,
    };
    assert_eq!(repeated.lacks_second_page(identities), None);
    // An interface of two pages is used without a read.
    let blob = version2_of(&[0], GICC, Some(GICH_GICV));
    let found = read(&blob).unwrap().gic.version2.unwrap();
    assert_eq!(found.with_adjacent_pages(|_| unreachable!()), found);
}

/// ACPI gives no size, so a repetition is found by its identification only.
#[test]
fn a_second_page_that_is_the_first_again_is_refused() {
    let blob = version2_of(&[0], GICC, Some(GICH_GICV));
    let found = read(&blob).unwrap().gic.version2.unwrap();
    for interface in [GICC, GICH_GICV[1]] {
        let repeated = [interface.base + 0xfc, interface.base + 0x10fc];
        let read = |register| u32::from(repeated.contains(&register));
        let why = found.lacks_second_page(read).unwrap();
        assert!(why.contains("GICC_DIR is elsewhere"));
    }
    let distinct = |register: u64| u32::from(register & 0x1000 == 0);
    assert_eq!(found.lacks_second_page(distinct), None);
    assert_eq!(found.lacks_second_page(|_| 0), None);
}

/// Some CPUs of Exynos Auto v9 in mainline Linux differ only in Aff2; those of Spreadtrum SC9860 share one Aff2, not 0.
#[test]
fn cpus_of_a_gicv2_differ_below_aff2() {
    assert!(read(&version2_of(&[0x53_0000, 0x53_0001, 0x53_0100], GICC, None)).is_ok());
    refused(
        &version2_of(&[0, 0x100, 0x1_0000, 0x1_0100], GICC, None),
        "CPU 0x10000 differs from another one only above Aff1, and with a GICv2 Rouse needs different Aff1 or Aff0",
    );
}

#[test]
fn a_gicv2_has_eight_cpus_at_most() {
    let cpus: Vec<u64> = (0..9).collect();
    assert!(read(&version2_of(&cpus[..8], GICC, None)).is_ok());
    refused(
        &version2_of(&cpus, GICC, None),
        "9 CPUs with a GICv2, which has at most 8",
    );
}

#[test]
fn a_reason_names_what_is_wrong() {
    refused(
        &with_properties("arm,gic-v3", &[("status", b"disabled\0".to_vec())]),
        "the GIC has a status other than 'okay': the boot loader has to enable it",
    );
    refused(
        &with_properties("arm,gic-v3", &[("#redistributor-regions", cells(&[0]))]),
        "interrupt-controller: property '#redistributor-regions' is missing or malformed",
    );
    // Linux boots with these two trees.
    let timer = with(&tree(), b"arm,armv8-timer", b"arm,armv7-timer");
    assert!(read(&timer).is_ok());
    let named = with(&tree(), b"cpu@", b"cor@");
    assert_eq!(read(&named).unwrap().cpus.len(), 2);
}

#[test]
fn a_redistributor_has_two_frames() {
    let expected = "interrupt-controller: property 'reg' is missing or malformed";
    let region = cells(&[0, 0x80a_0000, 0, 0x4_0000]);
    let small = cells(&[0, 0x80a_0000, 0, 0x1_0000]);
    refused(&with(&tree(), &region, &small), expected);
}

#[test]
fn each_cpu_has_a_redistributor() {
    let region = cells(&[0, 0x80a_0000, 0, 0x4_0000]);
    for (size, lacks) in [(0x4_0000, false), (0x3_0000, true), (0x2_0000, true)] {
        let small = with(&tree(), &region, &cells(&[0, 0x80a_0000, 0, size]));
        assert_eq!(read(&small).unwrap().lacks().is_some(), lacks, "{size:#x}");
    }
    // Two redistributors need one stride, and the frames of the second.
    for (stride, lacks) in [(0x2_0000, false), (0x4_0000, true), (0x100_0000, true)] {
        let stride = [("redistributor-stride", cells(&[0, stride]))];
        let tree = with_properties("arm,gic-v3", &stride);
        assert_eq!(read(&tree).unwrap().lacks().is_some(), lacks, "{stride:?}");
    }
}

#[test]
fn however_many_reservations_there_are_none_is_lost() {
    // The reservation map ends after the header; entries are inserted in front of its end.
    let entries = (1..=1000).flat_map(|n| cells(&[0, n << 13, 0, 0x1000]));
    let entries: Vec<u8> = entries.collect();
    let fields = [4, 8, 12].map(|field| (field, entries.len()));
    let tree = grown(&tree(), 40, entries, &fields);
    let reserved = read(&tree).unwrap().reserved;
    assert_eq!(reserved.len(), platform::MAX_RESERVED);
    for n in 1..=1000 {
        let page = Region {
            base: n << 13,
            size: 0x1000,
        };
        assert!(
            reserved
                .iter()
                .any(|kept| kept.base <= page.base && page.end() <= kept.end())
        );
    }
}

#[test]
fn more_cpus_than_fit_are_counted() {
    let cpus: Vec<u64> = (0..MAX_CPUS as u64 + 3).collect();
    let tree = tree_of(&cpus);
    let read = read(&tree).unwrap();
    assert_eq!((read.cpus.len(), read.cpus_ignored), (MAX_CPUS, 3));
}

#[test]
fn the_cpu_that_runs_comes_first() {
    let read = |cpus: &[u64], first| {
        let tree = tree_of(cpus);
        let mut room = Room::new();
        let read = Platform::from_fdt(&tree, room.begin_with(first)).unwrap();
        let mpidrs: Vec<u64> = read.cpus.iter().map(|cpu| cpu.mpidr).collect();
        (mpidrs, read.cpus_ignored, read.cpus[0])
    };
    let (mpidrs, ignored, _) = read(&[0x10, 0x20, 0x30, 0x40], 0x30);
    assert_eq!((mpidrs, ignored), (vec![0x30, 0x10, 0x20, 0x40], 0));
    // A CPU for which there was no room takes the place of the last CPU.
    let many: Vec<u64> = (0..MAX_CPUS as u64 + 3).collect();
    let last = MAX_CPUS as u64 + 2;
    let (mpidrs, ignored, first) = read(&many, last);
    let expected: Vec<u64> = [last].into_iter().chain(0..MAX_CPUS as u64 - 1).collect();
    assert_eq!((mpidrs, ignored), (expected, 4));
    let enable = Enable::Held;
    assert_eq!(
        first,
        Cpu {
            mpidr: last,
            enable
        }
    );
}

#[test]
fn a_tree_that_is_deeper_than_any_machine_is_refused() {
    let tree = tree();
    // The node is inserted before END, after the root's last child, so the root ends later.
    let end = (word(&tree, 8) + word(&tree, 36)) as usize - 8;
    let depth = 2000;
    let mut nested: Vec<u8> = (0..depth).flat_map(|_| cells(&[1, 0x6100_0000])).collect();
    nested.extend((0..depth).flat_map(|_| cells(&[2])));
    let fields = [4, 12, 36].map(|field| (field, nested.len()));
    let tree = grown(&tree, end, nested, &fields);
    // All nodes that are searched for come first, except PSCI, whose kind is unknown here.
    let tree = with(&tree, b"arm,psci-1.0", b"arm,psci-9.0");
    let tree = with(&tree, b"arm,psci-0.2", b"arm,psci-9.2");
    refused(&tree, "nodes nested more than 16 deep");
}

/// QEMU's `virt` with `secure=on`, whose tree has the RAM of the secure side as well: a
/// disabled memory node (Devicetree Specification 0.4, 2.3.4) is ignored.
#[test]
fn memory_that_is_disabled_is_not_used() {
    let tree = include_bytes!("../../../../test/fuzz/corpus/device-tree/virt-secure-smp8");
    let memory = read(tree).unwrap().memory;
    assert!(
        memory.iter().all(|bank| bank.base >= 0x4000_0000),
        "{memory:x?}"
    );
}

/// QEMU's tree, which has a watchdog.
const VIRT: &[u8] = include_bytes!("../virt.dtb");

#[test]
fn a_watchdog_is_known_by_its_control_frame() {
    let found = |tree: &[u8]| read(tree).unwrap().watchdogs.found.to_vec();
    let at = |control, kept| Watchdog { control, kept };
    assert_eq!(found(&tree()), []);
    assert_eq!(found(VIRT), [at(0xf00_1000, false)]);
    assert_eq!(read(VIRT).unwrap().why_not(&found(VIRT)[0]), None);
    // A disabled watchdog is the secure side's.
    for status in ["disabled\0", "fail\0"] {
        let status = [("status", status.as_bytes().to_vec())];
        let kept = added(VIRT.to_vec(), "arm,sbsa-gwdt", &status);
        assert_eq!(found(&kept), [at(0xf00_1000, true)]);
    }
    // Addresses that are not frames, and a frame in RAM.
    let reg = cells(&[0, 0xf00_1000, 0, 0x1000]);
    for (high, low, why) in [
        (0, 0, "not that of a frame"),
        (0, 0xf00_1008, "not that of a frame"),
        (1 << 16, 0, "not that of a frame"),
        (0, 0x4000_0000, "RAM"),
        (0, 0x800_0000, "interrupt controller"),
        (0, 0x900_0000, "console"),
    ] {
        let tree = with(VIRT, &reg, &cells(&[high, low, 0, 0x1000]));
        let platform = read(&tree).unwrap();
        let said = platform.why_not(&platform.watchdogs.found[0]);
        assert!(
            said.is_some_and(|said| said.contains(why)),
            "{low:#x}: {said:?}"
        );
    }
}
