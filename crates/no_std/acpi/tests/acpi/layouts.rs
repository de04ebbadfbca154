// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes real machines: c7g.metal with each set of harvested cores that was seen, Altra, and
//! QEMU's `virt`.

use std::collections::HashMap;

use crate::tables::{
    Gicc, MachineTables, RAM, RSDP, fadt, gicd, gicr, gtdt, its, madt, room, small, spcr,
};
use acpi::{Description, Ram};
use platform::{Conduit, Cpu, Enable, MAX_CPUS, Region, Timer, Uart, UartKind};

const VLPIS: u64 = 1 << 1;
const LAST: u64 = 1 << 4;

/// Number of core positions in each of c7g.metal's two clusters.
const PLACES: u64 = 33;

/// Returns the affinity and the redistributor of the core at position `place` of a cluster.
fn c7g_core(cluster: u64, place: u64) -> (u64, u64) {
    let frames = [0xb8_0014_0000, 0xbc_0014_0000][cluster as usize];
    (cluster << 32 | place << 16, frames + place * 0x4_0000)
}

/// Returns c7g.metal without the cores at `holes`, and the list of the remaining cores. If
/// `described`, the tables describe the cores at `holes` as unusable; otherwise the tables omit them.
fn c7g(holes: &[(u64, u64)], described: bool) -> (MachineTables, Vec<(u64, u64)>) {
    let mut structures = vec![gicd(0xb8_0000_0000, 4), its(0xbc_0010_0000)];
    let mut cores = vec![];
    for (cluster, place) in (0..2).flat_map(|cluster| (0..PLACES).map(move |p| (cluster, p))) {
        let (mpidr, frame) = c7g_core(cluster, place);
        let gicc = Gicc::new(mpidr, frame);
        if !holes.contains(&(cluster, place)) {
            structures.push(gicc.bytes());
            cores.push((mpidr, frame));
        } else if described {
            structures.push(gicc.off().bytes());
        }
    }
    let machine = MachineTables {
        fadt: fadt(1),
        madt: madt(&structures),
        gtdt: gtdt([30, 27, 26]),
        spcr: Some(spcr(0x00, 8, 1, 0xe2f0_0000)),
        others: vec![],
    };
    (machine, cores)
}

/// Checks that every CPU's redistributor is found by its affinity, and that nothing but
/// redistributors is read.
fn check_located(description: &Description<'_>, frames: &[(u64, u64)], flags: u64) {
    let typers: HashMap<u64, u64> = frames
        .iter()
        .map(|(mpidr, frame)| {
            let affinity = (mpidr >> 8 & 0xff00_0000) | mpidr & 0xff_ffff;
            (*frame, affinity << 32 | flags)
        })
        .collect();
    let platform = &description.platform;
    for cpu in platform.cpus {
        let expected = frames.iter().find(|frame| frame.0 == cpu.mpidr).unwrap().1;
        let found = gic::locate::locate(&platform.gic, cpu.mpidr, 0, |frame| typers[&frame]);
        assert_eq!(found, Some(expected), "CPU {:#x}", cpu.mpidr);
    }
}

#[test]
fn c7g_metal_with_every_layout_seen() {
    // Runs of frames 14 + 18 + 32, 12 + 20 + 32, 33 + 13 + 18, and 32 + 32.
    let layouts = [
        [(0, 14), (1, 32)],
        [(0, 12), (1, 32)],
        [(1, 13), (1, 32)],
        [(0, 32), (1, 32)],
    ];
    for (holes, described) in layouts.iter().flat_map(|h| [(h, false), (h, true)]) {
        let (machine, cores) = c7g(holes, described);
        let description = machine.read().unwrap();
        let platform = &description.platform;
        assert_eq!(cores.len(), 64);
        let cpus: Vec<_> = platform.cpus.iter().map(|cpu| cpu.mpidr).collect();
        assert_eq!(cpus, cores.iter().map(|core| core.0).collect::<Vec<_>>());
        assert_eq!(platform.cpus_ignored, 0);
        assert_eq!(platform.gic.redistributors.len(), 64);
        assert!(
            platform
                .gic
                .redistributors
                .iter()
                .all(|r| r.size == 0x4_0000)
        );
        assert_eq!(platform.gic.stride, Some(0x4_0000));
        check_located(&description, &cores, VLPIS);
        check_located(&description, &cores, VLPIS | LAST);
        // The result is the same if a frame claims to have no pages for virtual LPIs.
        check_located(&description, &cores, 0);
        let notes = &description.notes;
        assert_eq!(notes.unusable, if described { 2 } else { 0 });
        assert!(notes.redistributor_per_cpu && !notes.maintenance_assumed);
    }
}

#[test]
fn c7g_metal_in_detail() {
    let (machine, _) = c7g(&[(0, 32), (1, 32)], false);
    let mut ram = Ram::new();
    ram.usable(RAM).unwrap();
    let reserved = Region {
        base: 0x8000_0000,
        size: 0x1000,
    };
    ram.reserve(reserved).unwrap();
    let memory = machine.memory();
    let Description { platform, notes } =
        acpi::read(&memory, RSDP, &ram, "wait=wfi", room()).unwrap();
    let core = Cpu {
        mpidr: 0x1_001f_0000,
        enable: Enable::Psci,
    };
    assert_eq!(platform.cpus.last(), Some(&core));
    assert_eq!(platform.psci, Some(Conduit::Smc));
    assert_eq!(platform.memory.as_slice(), [RAM]);
    assert_eq!(*platform.reserved, [reserved]);
    assert_eq!(platform.bootargs, "wait=wfi");
    assert_eq!(platform.gic.distributor.base, 0xb8_0000_0000);
    assert_eq!(platform.gic.distributor.size, 0x1_0000);
    assert_eq!(platform.gic.maintenance, 25);
    let timer = Timer {
        virt: 27,
        phys: 30,
        hyp: Some(26),
    };
    assert_eq!(platform.timer, timer);
    let uart = Uart {
        kind: UartKind::Ns16550 { shift: 0, width: 1 },
        base: 0xe2f0_0000,
    };
    assert_eq!(platform.uart, Some(uart));
    assert_eq!((&notes.oem, &notes.oem_table), (b"AMAZON", b"GRVTN003"));
    assert_eq!(
        (notes.gic_version, notes.uart_type),
        (4, Some((acpi::Table::Spcr, 0)))
    );
    assert_eq!(notes.its.as_slice(), [0xbc_0010_0000]);
}

#[test]
fn altra() {
    // MPIDRs are like 0x1b0100: cluster in Aff2, core in Aff1; there is one range of frames.
    let frames: Vec<(u64, u64)> = (0..80)
        .map(|cpu| {
            (
                ((cpu / 2) << 16) | ((cpu % 2) << 8),
                0x1001_0014_0000 + cpu * 0x2_0000,
            )
        })
        .collect();
    let mut structures = vec![gicd(0x1001_0000_0000, 3)];
    structures.extend(frames.iter().map(|frame| Gicc::new(frame.0, 0).bytes()));
    structures.push(gicr(0x1001_0014_0000, 80 * 0x2_0000));
    structures.extend((0..8).map(|n| its(0x1001_0004_0000 + n * 0x2_0000)));
    let mut machine = MachineTables::new(madt(&structures));
    machine.spcr = Some(spcr(0x0e, 32, 3, 0x1000_0260_0000));
    let description = machine.read().unwrap();
    let platform = &description.platform;
    assert_eq!((platform.cpus.len(), platform.cpus_ignored), (80, 0));
    assert_eq!(platform.gic.redistributors.len(), 1);
    assert_eq!(platform.gic.stride, None);
    check_located(&description, &frames, 0);
    assert_eq!(description.notes.its.len(), 8);
    let uart = Uart {
        kind: UartKind::Pl011,
        base: 0x1000_0260_0000,
    };
    assert_eq!(platform.uart, Some(uart));
}

#[test]
fn a_per_cpu_machine_with_more_cpus_than_fit() {
    let cores: Vec<(u64, u64)> = (0..MAX_CPUS as u64 + 32)
        .map(|n| (((n % 256) << 16) | (n / 256), 0xb8_0014_0000 + n * 0x4_0000))
        .collect();
    let mut structures = vec![gicd(0xb8_0000_0000, 4)];
    structures.extend(cores.iter().map(|core| Gicc::new(core.0, core.1).bytes()));
    let description = MachineTables::new(madt(&structures)).read().unwrap();
    let platform = &description.platform;
    assert_eq!((platform.cpus.len(), platform.cpus_ignored), (MAX_CPUS, 32));
    assert_eq!(platform.gic.redistributors.len(), MAX_CPUS);
    check_located(&description, &cores, VLPIS);
}

#[test]
fn virt_in_miniature() {
    let description = small().read().unwrap();
    let platform = &description.platform;
    assert_eq!(platform.cpus.len(), 4);
    let range = Region {
        base: 0x80a_0000,
        size: 0x8_0000,
    };
    assert_eq!(platform.gic.redistributors, [range]);
    assert!(!description.notes.redistributor_per_cpu);
    assert_eq!(platform.uart.unwrap().kind, UartKind::Pl011);
}
