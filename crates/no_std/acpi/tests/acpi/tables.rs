// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds tables, and the memory that contains them.

use acpi::{Description, Error, Ram, Table, Tables};
use platform::{Region, Room};

/// Addresses of the RSDP, the XSDT and the first table.
pub const RSDP: u64 = 0x1000;
pub const XSDT: u64 = 0x2000;
pub const FIRST: u64 = 0x1_0000;
/// Distance from one table to the next.
pub const STEP: u64 = 0x1_0000;
/// Addresses at which [`MachineTables::memory`] puts the tables.
pub const FADT: u64 = FIRST;
pub const MADT: u64 = FIRST + STEP;
pub const GTDT: u64 = FIRST + 2 * STEP;
pub const SPCR: u64 = FIRST + 3 * STEP;
/// The RAM that the loader reports.
pub const RAM: Region = Region {
    base: 0x8000_0000,
    size: 0x4000_0000,
};

/// Pieces of memory, each with its address.
#[derive(Clone, Debug)]
pub struct Memory(pub Vec<(u64, Vec<u8>)>);

impl Tables for Memory {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.0.iter().find_map(|(base, bytes)| {
            let start = usize::try_from(address.checked_sub(*base)?).ok()?;
            bytes.get(start..start.checked_add(length)?)
        })
    }
}

/// Returns room for a machine; it is leaked, so that a test can keep the machine.
pub fn room() -> &'static mut Room {
    Box::leak(Box::default())
}

impl Memory {
    /// Returns the piece that begins at `address`.
    pub fn at(&mut self, address: u64) -> &mut Vec<u8> {
        let found = self.0.iter_mut().find(|piece| piece.0 == address);
        &mut found.unwrap().1
    }

    /// Reads the machine that the tables describe.
    pub fn describe(&self) -> Result<Description<'static>, Error> {
        let mut ram = Ram::new();
        ram.usable(RAM)?;
        // Most of some 100,000 tables are refused, and their room is freed: only an accepted machine leaks its room.
        acpi::read(self, RSDP, &ram, "", &mut Room::default())?;
        acpi::read(self, RSDP, &ram, "", room())
    }

    /// Like [`Self::describe`], but fails if the console's table has a defect.
    pub fn read(&self) -> Result<Description<'static>, Error> {
        let found = self.describe()?;
        match found.notes.wrong_console {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }
}

/// Corrects the table's length and checksum.
pub fn seal(table: &mut [u8]) {
    let length = u32::try_from(table.len()).unwrap();
    table[4..8].copy_from_slice(&length.to_le_bytes());
    fix_checksum(table, 9);
}

/// Makes the sum of all bytes 0 by adjusting the byte at `checksum`.
pub fn fix_checksum(bytes: &mut [u8], checksum: usize) {
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[checksum] = bytes[checksum].wrapping_sub(sum);
}

/// Returns `length` bytes that are zero except for `fields`.
pub fn bytes(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (offset, value) in fields {
        bytes[*offset..offset + value.len()].copy_from_slice(value);
    }
    bytes
}

/// Builds a table of `length` bytes with the given fields.
pub fn table(
    signature: &[u8; 4],
    revision: u8,
    length: usize,
    fields: &[(usize, &[u8])],
) -> Vec<u8> {
    let mut table = bytes(length, fields);
    table[0..4].copy_from_slice(signature);
    table[8] = revision;
    table[10..16].copy_from_slice(b"AMAZON");
    table[16..24].copy_from_slice(b"GRVTN003");
    table[28..32].copy_from_slice(b"TEST");
    seal(&mut table);
    table
}

/// Builds a FADT of revision 6.3 with these ARM_BOOT_ARCH flags.
pub fn fadt(arm_boot_arch: u16) -> Vec<u8> {
    let flags = arm_boot_arch.to_le_bytes();
    table(
        b"FACP",
        6,
        276,
        &[(112, &[0, 0, 0x30, 0]), (129, &flags), (131, &[3])],
    )
}

/// Builds a GTDT of revision 3 with three GSIVs: NS EL1, virtual, EL2.
pub fn gtdt(gsivs: [u32; 3]) -> Vec<u8> {
    let [phys, virt, hyp] = gsivs.map(u32::to_le_bytes);
    let none = [0xff; 8];
    let fields: [(usize, &[u8]); 7] = [
        (36, &none),
        (48, &[29, 0, 0, 0]),
        (56, &phys),
        (64, &virt),
        (72, &hyp),
        (80, &none),
        (96, &[28, 0, 0, 0]),
    ];
    table(b"GTDT", 3, 104, &fields)
}

/// Builds a GTDT with `count` platform timers, whose bytes are `timers`.
pub fn gtdt_with(count: u32, timers: &[u8]) -> Vec<u8> {
    let mut table = gtdt([30, 27, 26]);
    table[88..92].copy_from_slice(&count.to_le_bytes());
    table[92..96].copy_from_slice(&104_u32.to_le_bytes());
    table.extend(timers);
    seal(&mut table);
    table
}

/// Builds an Arm Generic Watchdog structure.
pub fn watchdog(control: u64, flags: u32) -> Vec<u8> {
    let fields: [(usize, &[u8]); 5] = [
        (0, &[1, 28]),
        (4, &(control ^ 0x1000).to_le_bytes()),
        (12, &control.to_le_bytes()),
        (20, &[48]),
        (24, &flags.to_le_bytes()),
    ];
    bytes(28, &fields)
}

/// Builds a GT Block structure without timers.
pub fn block() -> Vec<u8> {
    bytes(20, &[(0, &[0, 20])])
}

/// Builds an SPCR of revision 2: interface type, bit width, access size and address.
pub fn spcr(interface: u8, width: u8, access: u8, address: u64) -> Vec<u8> {
    let address = address.to_le_bytes();
    let fields: [(usize, &[u8]); 6] = [
        (36, &[interface]),
        (41, &[width]),
        (43, &[access]),
        (44, &address),
        (52, &[8]),
        (58, &[7]),
    ];
    table(b"SPCR", 2, 80, &fields)
}

/// A GICC structure.
#[derive(Clone, Copy, Debug)]
pub struct Gicc {
    pub flags: u32,
    pub parked: u64,
    /// GICC, GICV and GICH of a GICv2.
    pub interfaces: [u64; 3],
    pub maintenance: u32,
    pub redistributor: u64,
    pub mpidr: u64,
    pub length: u8,
}

impl Gicc {
    pub const fn new(mpidr: u64, redistributor: u64) -> Self {
        Self {
            flags: 1,
            parked: 0,
            interfaces: [0; 3],
            maintenance: 25,
            redistributor,
            mpidr,
            length: 80,
        }
    }

    pub const fn off(mut self) -> Self {
        self.flags = 0;
        self
    }

    /// A CPU with the interfaces of QEMU's GICv2.
    pub const fn with_interfaces(mpidr: u64) -> Self {
        let mut cpu = Self::new(mpidr, 0);
        cpu.interfaces = [0x801_0000, 0x804_0000, 0x803_0000];
        cpu
    }

    pub fn bytes(&self) -> Vec<u8> {
        let [gicc, gicv, gich] = self.interfaces.map(u64::to_le_bytes);
        bytes(
            self.length.into(),
            &[
                (0, &[0xb, self.length]),
                (12, &self.flags.to_le_bytes()),
                (24, &self.parked.to_le_bytes()),
                (32, &gicc),
                (40, &gicv),
                (48, &gich),
                (56, &self.maintenance.to_le_bytes()),
                (60, &self.redistributor.to_le_bytes()),
                (68, &self.mpidr.to_le_bytes()),
            ],
        )
    }
}

/// Builds a GICD structure.
pub fn gicd(base: u64, version: u8) -> Vec<u8> {
    let fields: [(usize, &[u8]); 3] = [(0, &[0xc, 24]), (8, &base.to_le_bytes()), (20, &[version])];
    bytes(24, &fields)
}

/// Builds a GICR structure.
pub fn gicr(base: u64, length: u32) -> Vec<u8> {
    let fields: [(usize, &[u8]); 3] = [
        (0, &[0xe, 16]),
        (4, &base.to_le_bytes()),
        (12, &length.to_le_bytes()),
    ];
    bytes(16, &fields)
}

/// Builds a GIC ITS structure.
pub fn its(base: u64) -> Vec<u8> {
    bytes(20, &[(0, &[0xf, 20]), (8, &base.to_le_bytes())])
}

/// Builds a MADT of `structures`.
pub fn madt(structures: &[Vec<u8>]) -> Vec<u8> {
    let structures = structures.concat();
    table(b"APIC", 5, 44 + structures.len(), &[(44, &structures)])
}

/// A machine's tables.
#[derive(Clone, Debug)]
pub struct MachineTables {
    pub fadt: Vec<u8>,
    pub madt: Vec<u8>,
    pub gtdt: Vec<u8>,
    pub spcr: Option<Vec<u8>>,
    pub others: Vec<Vec<u8>>,
}

impl MachineTables {
    /// Returns the machine with `madt` and the usual other tables.
    pub fn new(madt: Vec<u8>) -> Self {
        Self {
            fadt: fadt(1),
            madt,
            gtdt: gtdt([30, 27, 26]),
            spcr: Some(spcr(0x03, 32, 3, 0x900_0000)),
            others: vec![],
        }
    }

    /// Lays the tables out in memory. The SPCR and the optional tables come last.
    pub fn memory(&self) -> Memory {
        let mut tables = vec![&self.fadt, &self.madt, &self.gtdt];
        tables.extend(&self.spcr);
        tables.extend(&self.others);
        let addresses = (0..).map(|index| FIRST + index * STEP);
        let pieces: Vec<_> = addresses.zip(tables.into_iter().cloned()).collect();
        let entries: Vec<u8> = pieces.iter().flat_map(|p| p.0.to_le_bytes()).collect();
        let xsdt = table(b"XSDT", 1, 36 + entries.len(), &[(36, &entries)]);
        let mut memory = Memory(vec![(RSDP, rsdp(2)), (XSDT, xsdt)]);
        memory.0.extend(pieces);
        memory
    }

    pub fn read(&self) -> Result<Description<'static>, Error> {
        self.memory().read()
    }
}

/// Builds an RSDP.
pub fn rsdp(revision: u8) -> Vec<u8> {
    let fields: [(usize, &[u8]); 5] = [
        (0, b"RSD PTR "),
        (9, b"AMAZON"),
        (15, &[revision]),
        (20, &[36]),
        (24, &XSDT.to_le_bytes()),
    ];
    let mut rsdp = bytes(36, &fields);
    fix_checksum(&mut rsdp[..20], 8);
    fix_checksum(&mut rsdp, 32);
    rsdp
}

/// Returns a small `virt` of QEMU: one range of redistributors, four CPUs, an ITS.
pub fn small() -> MachineTables {
    let mut structures = vec![gicd(0x800_0000, 3)];
    structures.extend((0..4).map(|cpu| Gicc::new(cpu, 0).bytes()));
    structures.extend([gicr(0x80a_0000, 4 * 0x2_0000), its(0x808_0000)]);
    MachineTables::new(madt(&structures))
}

/// Returns a machine of two CPUs with a redistributor each.
pub fn pair(first: Gicc, second: Gicc) -> MachineTables {
    MachineTables::new(madt(&[gicd(0x800_0000, 4), first.bytes(), second.bytes()]))
}

/// Asserts that the machine is refused with message `expected`.
#[track_caller]
pub fn refused(machine: &MachineTables, expected: &str) {
    assert_eq!(machine.read().unwrap_err().to_string(), expected);
}

/// Asserts that the machine is refused because of the field at `offset` of `table`.
#[track_caller]
pub fn refused_at(machine: &MachineTables, table: Table, offset: usize) {
    match machine.read() {
        Err(Error::Defect {
            table: t,
            offset: o,
            ..
        }) => assert_eq!((t, o), (table, offset)),
        other => panic!("{other:?}"),
    }
}
