// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads back the trees that are written for guests.

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};
use platform::guest::{BufferTooSmall, GuestTree, IdleState};
use platform::{Conduit, Enable, Firmware, Timer, Uart, UartKind};

use super::{guest_of, read, region, written};

#[test]
fn what_is_written_reads_back() {
    let cpus = [0x1_0001_0000, 0x3, 0x1f_0000];
    let guest = GuestTree {
        memory: region(0x8_4000_0000, 0x1000_0000),
        ..guest_of(&cpus)
    };
    let buffer = written(&guest);
    let read = read(&buffer).unwrap();
    let mpidrs: Vec<u64> = read.cpus.iter().map(|cpu| cpu.mpidr).collect();
    assert_eq!(mpidrs, cpus);
    assert!(read.cpus.iter().all(|cpu| cpu.enable == Enable::Psci));
    assert_eq!(read.memory.as_slice(), [guest.memory]);
    assert_eq!(read.gic.distributor, guest.distributor);
    assert_eq!(read.gic.redistributors, guest.redistributors);
    assert_eq!((read.timer, read.uart), (guest.timer, guest.uart));
    assert_eq!(read.psci, Some(Conduit::Smc));
    assert_eq!(read.hypervisor, None);
    assert_eq!(read.described_by, Firmware::Fdt);
    assert_eq!(read.bootargs, "rouse.wait=wfi rouse.workload=ipi");
}

#[test]
fn idle_states_are_those_of_every_cpu() {
    let states = [(100, 200), (400, 2000)].map(|(exit_us, residency_us)| IdleState {
        exit_us,
        residency_us,
    });
    let with = GuestTree {
        idle_states: &states,
        seed: Some(0x1_0000_0002),
        ..guest_of(&[0, 1])
    };
    let buffer = written(&with);
    let fdt = Fdt::new(&buffer).unwrap();
    let at = |path: &str| fdt.find_node(path).unwrap();
    let words = |node: &FdtNode<'_>, name| -> Vec<u32> {
        let property = node.property(name).unwrap();
        let words = property.value().chunks(4);
        words
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect()
    };
    let paths = ["/cpus/idle-states/standby", "/cpus/idle-states/standby-1"];
    let nodes = paths.map(at);
    let handles: Vec<u32> = nodes
        .iter()
        .flat_map(|node| words(node, "phandle"))
        .collect();
    for path in ["/cpus/cpu@000", "/cpus/cpu@001"] {
        assert_eq!(words(&at(path), "cpu-idle-states"), handles);
    }
    for ((node, state), number) in nodes.iter().zip(states).zip(0..) {
        assert_eq!(words(node, "arm,psci-suspend-param"), [number]);
        assert_eq!(words(node, "exit-latency-us"), [state.exit_us]);
        assert_eq!(words(node, "min-residency-us"), [state.residency_us]);
    }
    let seed = at("/chosen").property("rng-seed").unwrap();
    assert_eq!(seed.value(), [0, 0, 0, 1, 0, 0, 0, 2]);
    let buffer = written(&guest_of(&[0, 1]));
    let text = String::from_utf8_lossy(&buffer).into_owned();
    assert!(!text.contains("idle-states") && !text.contains("rng-seed"));
}

#[test]
fn a_machine_that_is_not_ours_reads_back_as_well() {
    let kind = UartKind::Ns16550 { shift: 2, width: 4 };
    let base = 0x1_e2f0_0000;
    let frames = |base| region(base, 0x8_0000);
    let described = GuestTree {
        redistributors: &[frames(0x1_0800_0000), frames(0x1_0900_0000)],
        stride: Some(0x4_0000),
        uart: Some(Uart { kind, base }),
        timer: Timer {
            virt: 27,
            phys: 30,
            hyp: None,
        },
        conduit: Some(Conduit::Hvc),
        hypervisor: Some("xen,xen-4.20"),
        described_by: Firmware::Acpi,
        ..guest_of(&[0x8000])
    };
    let buffer = written(&described);
    let read = read(&buffer).unwrap();
    assert_eq!(read.gic.redistributors, described.redistributors);
    assert_eq!(read.gic.stride, described.stride);
    assert_eq!((read.uart, read.timer), (described.uart, described.timer));
    assert_eq!(read.psci, Some(Conduit::Hvc));
    assert_eq!(read.hypervisor.as_deref(), described.hypervisor);
    assert_eq!(read.described_by, Firmware::Acpi);
}

#[test]
fn an_initial_ram_disk_is_where_linux_looks_for_one() {
    let described = GuestTree {
        initrd: Some(region(0x1_4fff_f000, 0x234)),
        ..guest_of(&[0])
    };
    let buffer = written(&described);
    let tree = Fdt::new(&buffer).unwrap();
    let chosen = tree.root().child("chosen").unwrap();
    let read = |name| {
        let property = chosen.property(name).unwrap();
        let value = property.value();
        u64::from_be_bytes(value.try_into().unwrap())
    };
    assert_eq!(read("linux,initrd-start"), 0x1_4fff_f000);
    assert_eq!(read("linux,initrd-end"), 0x1_4fff_f234);
}

#[test]
fn without_console_and_psci_none_is_described() {
    let described = GuestTree {
        uart: None,
        conduit: None,
        ..guest_of(&[0])
    };
    let buffer = written(&described);
    let read = read(&buffer).unwrap();
    assert_eq!((read.uart, read.psci), (None, None));
    assert_eq!(read.cpus[0].enable, Enable::Held);
}

#[test]
fn every_short_buffer_is_refused() {
    let mut buffer = written(&guest_of(&[0]));
    for short in 0..buffer.len() {
        let written = guest_of(&[0]).write(&mut buffer[..short]);
        assert_eq!(written, Err(BufferTooSmall));
    }
}
