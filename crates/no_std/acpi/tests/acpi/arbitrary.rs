// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the bytes are, reading them ends in a machine or an error.

use crate::tables::{self, FADT, GTDT, MADT, Memory, RAM, RSDP, SPCR, XSDT, small};
use acpi::{Ram, Tables};
use platform::Room;
use proptest::collection::vec;
use proptest::prelude::*;

/// Gives the same bytes at every address.
struct Everywhere(Vec<u8>);

impl Tables for Everywhere {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address).ok()? % self.0.len().max(1);
        self.0.get(start..start.checked_add(length)?)
    }
}

/// Memory that gives more bytes, or fewer, than it was asked for.
struct Careless(Memory, usize);

impl Tables for Careless {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let piece = self.0.0.iter().find(|piece| piece.0 == address)?;
        piece.1.get(..length.checked_add(self.1)?.saturating_sub(1))
    }
}

fn read(tables: &impl Tables, rsdp: u64) {
    let mut ram = Ram::new();
    ram.usable(RAM).unwrap();
    let mut room = Room::new();
    let description = acpi::read(tables, rsdp, &ram, "", &mut room);
    match description {
        // An accepted description holds what a platform is promised to hold.
        Ok(description) => {
            let platform = description.platform;
            assert!(!platform.cpus.is_empty() && !platform.gic.redistributors.is_empty());
            assert!(
                platform
                    .gic
                    .redistributors
                    .iter()
                    .all(|r| r.size >= 0x2_0000)
            );
            assert!((16..32).contains(&platform.gic.maintenance));
            // None that would be written is in RAM.
            for watchdog in &platform.watchdogs.found {
                let frame = watchdog.control..watchdog.control.saturating_add(0x1000);
                let inside = RAM.overlaps(&platform::Region::from(frame));
                assert!(!inside || platform.why_not(watchdog).is_some());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

const PIECES: [u64; 6] = [RSDP, XSDT, FADT, MADT, GTDT, SPCR];

/// Makes the checksums right, so that the contents are read.
fn repair(memory: &mut Memory) {
    for address in PIECES {
        let piece = memory.at(address);
        if address == RSDP {
            tables::correct(&mut piece[..20], 8);
            tables::correct(piece, 32);
        } else {
            tables::correct(piece, 9);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 2000 }))]

    #[test]
    fn bytes_at_random(bytes in vec(any::<u8>(), 0..4096), rsdp: u64) {
        read(&Everywhere(bytes), rsdp);
    }

    #[test]
    fn tables_with_bytes_at_random(changes in vec((0..6_usize, any::<prop::sample::Index>(), any::<u8>()), 1..24)) {
        let mut memory = small().memory();
        for (piece, offset, value) in changes {
            let piece = memory.at(PIECES[piece]);
            let offset = offset.index(piece.len());
            piece[offset] = value;
        }
        repair(&mut memory);
        read(&memory, RSDP);
    }

    #[test]
    fn one_field_at_random(piece in 2..6_usize, offset: prop::sample::Index, value: u64) {
        let mut memory = small().memory();
        let bytes = memory.at(PIECES[piece]);
        let offset = offset.index(bytes.len() - 8);
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        repair(&mut memory);
        read(&memory, RSDP);
    }

    #[test]
    fn structures_at_random(body in vec(any::<u8>(), 0..600)) {
        let mut machine = small();
        machine.madt = tables::madt(&[machine.madt[44..].to_vec(), body]);
        read(&machine.memory(), RSDP);
    }

    #[test]
    fn platform_timers_at_random(count: u32, body in vec(0..40_u8, 0..200)) {
        let mut machine = small();
        machine.gtdt = tables::gtdt_with(count % 16, &body);
        read(&machine.memory(), RSDP);
    }

    #[test]
    fn bodies_at_random(body in vec(any::<u8>(), 0..400), which in 0..4_usize, revision: u8) {
        let mut machine = small();
        let signature = [b"FACP", b"APIC", b"GTDT", b"SPCR"][which];
        let table = tables::table(signature, revision, 36 + body.len(), &[(36, &body)]);
        match which {
            0 => machine.fadt = table,
            1 => machine.madt = table,
            2 => machine.gtdt = table,
            _ => machine.spcr = Some(table),
        }
        read(&machine.memory(), RSDP);
    }
}

#[test]
fn memory_of_the_wrong_size_is_not_read() {
    let mut ram = Ram::new();
    ram.usable(RAM).unwrap();
    for surplus in [0, 2] {
        let careless = Careless(small().memory(), surplus);
        let error = acpi::read(&careless, RSDP, &ram, "", &mut Room::new()).unwrap_err();
        let expected = "ACPI: RSDP: 20 bytes at address 0x1000 are not readable memory";
        assert_eq!(error.to_string(), expected);
    }
    acpi::read(
        &Careless(small().memory(), 1),
        RSDP,
        &ram,
        "",
        &mut Room::new(),
    )
    .unwrap();
}
