// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes device trees.

use platform::claims::{END, FRAME};
use platform::guest::GuestTree;
use platform::{Conduit, Firmware, Platform, Region, Report, Room, Timer, Uart, UartKind};

use crate::bytes::Bytes;
use crate::description;

/// Reads a device tree as firmware may leave it, and checks the description and the report that follow from it.
pub fn device_tree(data: &[u8]) {
    let mut room = Room::new();
    let read = Platform::from_fdt(data, &mut room);
    let report = Report::from_fdt(data, END);
    match read {
        Ok(platform) => {
            description::check(&platform);
            assert_eq!(report.uart, platform.uart);
            assert_eq!(
                (report.psci, report.bootargs),
                (platform.psci, platform.bootargs)
            );
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            report.uart.iter().for_each(description::check_uart);
        }
    }
}

/// Writes a guest's tree into a buffer of any size, reads it back, and compares.
pub fn guest_tree(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut buffer = vec![0xa5; bytes.u32() as usize % 0x4000];
    let first = bytes.u64() & 0xff_00ff_0000;
    let cpus: Vec<u64> = (0..=bytes.u8()).map(|n| first | u64::from(n)).collect();
    // No region overlaps another: their addresses are at least two units apart, in any order, and no region is larger
    // than two units.
    let unit = FRAME + (bytes.u64() >> 20) / FRAME * FRAME;
    let first = u64::from(bytes.u8());
    let mut region = |place: u64| Region {
        base: unit * (1 + 2 * ((first + place) % 4)),
        size: 2 * FRAME.max(bytes.u64() % unit),
    };
    let (memory, distributor, uart) = (region(0), region(1), region(2));
    let redistributors = [region(3)];
    let conduit = match bytes.u8() & 1 {
        0 => Conduit::Smc,
        _ => Conduit::Hvc,
    };
    let kind = UartKind::Pl011;
    let bootargs = String::from_utf8_lossy(bytes.0).replace('\0', " ");
    let tree = GuestTree {
        cpus: cpus.iter().copied(),
        memory,
        distributor,
        version2: None,
        redistributors: &redistributors,
        stride: None,
        uart: Some(Uart {
            kind,
            base: uart.base,
        }),
        timer: Timer {
            virt: 16 + u32::from(bytes.u8() % 5),
            phys: 21 + u32::from(bytes.u8() % 4),
            hyp: Some(26 + u32::from(bytes.u8() % 6)),
        },
        conduit: Some(conduit),
        hypervisor: None,
        described_by: Firmware::Fdt,
        exits: None,
        idle_states: &[],
        seed: None,
        initrd: None,
        bootargs: plan::guest_part(&bootargs),
    };
    if let Ok(size) = tree.write(&mut buffer) {
        let mut room = Room::new();
        let read =
            Platform::from_fdt(&buffer[..size], &mut room).expect("what was written can be read");
        assert!(
            read.cpus
                .iter()
                .map(|cpu| cpu.mpidr)
                .eq(cpus.iter().copied())
        );
        assert_eq!(read.memory.as_slice(), [memory]);
        assert_eq!(read.gic.distributor, distributor);
        assert_eq!(read.gic.redistributors, redistributors);
        assert_eq!(read.timer, tree.timer);
        assert_eq!(read.psci, Some(conduit));
        assert_eq!(read.uart.map(|uart| uart.base), Some(uart.base));
        // The hypervisor keeps its own words, and passes all other words on in their order.
        let others = bootargs.split_ascii_whitespace().filter(|word| {
            let key = word.split('=').next();
            !matches!(key, Some("rouse.survey" | "rouse.options" | "rouse.uart"))
        });
        assert!(read.bootargs.split_ascii_whitespace().eq(others));
        assert_eq!(read.bootargs, read.bootargs.trim_ascii_end());
    }
}
