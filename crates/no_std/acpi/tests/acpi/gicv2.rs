// SPDX-License-Identifier: MIT OR Apache-2.0
//! MADTs of machines with a GICv2: the interfaces that the GICC structures name, and impossible ones.

use crate::tables::{Gicc, MachineTables, RAM, gicd, gicr, its, madt, refused, refused_at};
use acpi::Table;
use platform::{GicV2, Region};

/// Offsets in a GICC structure.
const FIELDS: [usize; 3] = [32, 40, 48];
const MPIDR: usize = 68;

/// Returns the offset of the `n`-th GICC structure in the MADT of [`build`].
const fn gicc_at(n: usize) -> usize {
    44 + 24 + 80 * n
}

/// Returns QEMU's `virt` with a GICv2 that a GICD structure with `version` describes.
pub fn machine(version: u8, cpus: &[u64]) -> MachineTables {
    let cpus: Vec<Gicc> = cpus.iter().map(|&cpu| Gicc::with_interfaces(cpu)).collect();
    build(version, &cpus)
}

fn build(version: u8, cpus: &[Gicc]) -> MachineTables {
    let cpus = cpus.iter().map(Gicc::bytes);
    let structures: Vec<_> = [gicd(0x800_0000, version)]
        .into_iter()
        .chain(cpus)
        .collect();
    MachineTables::new(madt(&structures))
}

/// Returns two CPUs; `change` changes the second one.
fn two(change: impl FnOnce(&mut Gicc)) -> [Gicc; 2] {
    let mut second = Gicc::with_interfaces(1);
    change(&mut second);
    [Gicc::with_interfaces(0), second]
}

#[test]
fn virt_with_a_gicv2() {
    for version in [2, 0] {
        let found = machine(version, &[0, 1, 0x100]).read().unwrap();
        let gic = &found.platform.gic;
        let region = |base, size| Region { base, size };
        let interfaces = GicV2 {
            gicc: region(0x801_0000, 0x2000),
            virt: Some([region(0x803_0000, 0x1000), region(0x804_0000, 0x2000)]),
        };
        assert_eq!(gic.version2, Some(interfaces));
        assert_eq!(gic.distributor, region(0x800_0000, 0x1000));
        assert_eq!((gic.redistributors, gic.stride), (&[][..], None));
        assert_eq!((gic.maintenance, found.platform.cpus.len()), (25, 3));
        assert_eq!(found.platform.lacks(), None);
        let text = found.notes.to_string();
        let expected = format!("GIC v{version}, a GICv2's CPU interfaces, 0 ITS");
        assert!(text.contains(&expected), "{text}");
    }
}

/// A GICv3 with a legacy interface has GICC, GICV and GICH, too.
#[test]
fn without_a_version_redistributors_decide() {
    let own = |redistributor| {
        let cpus = two(|cpu| cpu.redistributor = redistributor);
        build(0, &[cpus[1]]).read().unwrap().platform.gic.version2
    };
    assert_eq!((own(0x80a_0000), own(0).is_some()), (None, true));
    let cpu = Gicc::with_interfaces(0).bytes();
    let range = gicr(0x80a_0000, 0x2_0000);
    for (version, is_version2) in [(0, false), (2, true), (3, false), (4, false)] {
        let structures = [gicd(0x800_0000, version), cpu.clone(), range.clone()];
        let found = MachineTables::new(madt(&structures)).read().unwrap();
        let gic = &found.platform.gic;
        assert_eq!(gic.version2.is_some(), is_version2, "{version}");
        assert_eq!(gic.redistributors.is_empty(), is_version2, "{version}");
    }
    // Neither redistributors nor an interface: the message names a GICv3's.
    let nothing = Gicc::new(0, 0);
    refused_at(&build(0, &[nothing]), Table::Madt, gicc_at(0) + 60);
    refused_at(&build(2, &[nothing]), Table::Madt, gicc_at(0) + 32);
    refused_at(&build(3, &two(|_| {})), Table::Madt, gicc_at(0) + 60);
}

#[test]
fn a_cpu_that_is_off_decides_nothing() {
    let off = two(|cpu| {
        *cpu = cpu.off();
        cpu.interfaces = [0xdead_0000; 3];
        cpu.redistributor = 0x80a_0000;
        cpu.maintenance = 99;
    });
    for version in [0, 2] {
        let found = build(version, &off).read().unwrap();
        assert!(found.platform.gic.version2.is_some());
        assert_eq!((found.platform.cpus.len(), found.notes.unusable), (1, 1));
    }
}

#[test]
fn all_cpus_find_their_interfaces_at_one_address() {
    for (n, field) in FIELDS.into_iter().enumerate() {
        for other in [0, 0x900_0000 - 0x1_0000] {
            let cpus = two(|cpu| cpu.interfaces[n] = other);
            refused_at(&build(2, &cpus), Table::Madt, gicc_at(1) + field);
        }
    }
    refused(
        &build(2, &two(|cpu| cpu.interfaces[0] = 0x802_0000)),
        "ACPI: MADT (signature APIC): offset 0xb4: \
         expected the address of the CPUs before, as the GIC is a GICv2, found 0x8020000",
    );
}

#[test]
fn interfaces_are_apart_and_outside_of_ram() {
    let wrong = [
        0x801_0800,
        0x800_0000,
        RAM.base,
        RAM.base - 0x1000,
        1 << 48,
        u64::MAX - 0xfff,
    ];
    for (n, field) in FIELDS.into_iter().enumerate() {
        for base in wrong {
            // One page of GICH fits right below the RAM.
            if field == 48 && base == RAM.base - 0x1000 {
                continue;
            }
            let mut cpu = Gicc::with_interfaces(0);
            cpu.interfaces[n] = base;
            refused_at(&build(2, &[cpu]), Table::Madt, gicc_at(0) + field);
        }
    }
    // GICV is claimed last, and its second page would be GICH.
    let mut cpu = Gicc::with_interfaces(0);
    cpu.interfaces[1] = 0x802_f000;
    refused_at(&build(2, &[cpu]), Table::Madt, gicc_at(0) + 40);
    cpu.interfaces[1] = 0x802_e000;
    build(2, &[cpu]).read().unwrap();
    let mut machine = machine(2, &[0]);
    machine.madt = madt(&[gicd(0x800_0800, 2), Gicc::with_interfaces(0).bytes()]);
    refused(
        &machine,
        "ACPI: MADT (signature APIC): offset 0x34: \
         expected an address that is a multiple of 0x1000 and not 0, found 0x8000800",
    );
}

#[test]
fn without_the_virtual_interface_the_guest_runs_alone() {
    for n in [1, 2] {
        let mut cpu = Gicc::with_interfaces(0);
        cpu.interfaces[n] = 0;
        cpu.maintenance = 0;
        let found = build(2, &[cpu]).read().unwrap();
        let version2 = found.platform.gic.version2.unwrap();
        assert_eq!((version2.gicc.base, version2.virt), (0x801_0000, None));
        let lacks = found.platform.lacks().unwrap();
        assert!(lacks.contains("without GICH and GICV"), "{lacks}");
        assert!(found.notes.maintenance_assumed);
    }
}

#[test]
fn the_maintenance_interrupt_is_common() {
    let read = |intid| build(2, &two(|cpu| cpu.maintenance = intid));
    for wrong in [0, 24, 15, 32] {
        refused_at(&read(wrong), Table::Madt, gicc_at(1) + 56);
    }
    let mut cpus = two(|cpu| cpu.maintenance = 24);
    cpus[0].maintenance = 24;
    let found = build(2, &cpus).read().unwrap();
    assert_eq!(found.platform.gic.maintenance, 24);
}

#[test]
fn a_gicv2_has_few_cpus_that_differ_in_low_affinities() {
    let most: Vec<u64> = (0..8).collect();
    machine(2, &most).read().unwrap();
    let more: Vec<u64> = (0..9).collect();
    refused(
        &machine(2, &more),
        "ACPI: MADT (signature APIC): offset 0x308: \
         expected no more than 8 CPUs, as the GIC is a GICv2, found 0x8",
    );
    machine(2, &[0x0, 0x1_0001, 0x1_0100]).read().unwrap();
    let alike = machine(2, &[0x0, 0x1_0001, 0x1_0000]);
    refused_at(&alike, Table::Madt, gicc_at(2) + MPIDR);
}

#[test]
fn a_translation_service_of_a_gicv2_is_ignored() {
    let structures = [
        gicd(0x800_0000, 2),
        Gicc::with_interfaces(0).bytes(),
        its(0x800_0000),
    ];
    let found = MachineTables::new(madt(&structures)).read().unwrap();
    assert!(found.notes.its.is_empty());
}
