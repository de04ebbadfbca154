// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MADT's interrupt controller structures for GICs (5.2.12).

use crate::error::Error;
use crate::view::{HEADER, View};

/// Offset of the first structure, after the header, the local controller address and the flags.
const FIRST: usize = HEADER + 8;

/// GIC CPU Interface (5.2.12.14): one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Gicc<'t>(pub View<'t>);

/// Offsets of the GICC structure's fields.
pub const GICC_FLAGS: usize = 12;
pub const GICC_BASE: usize = 32;
pub const GICC_GICV: usize = 40;
pub const GICC_GICH: usize = 48;
pub const GICC_MAINTENANCE: usize = 56;
pub const GICC_REDISTRIBUTOR: usize = 60;
pub const GICC_MPIDR: usize = 68;
const GICC_PARKED: usize = 24;
/// In the flags: the CPU is ready for use.
const ENABLED: u32 = 1 << 0;
/// In the flags: the CPU is not ready, but can be made ready at run time.
const ONLINE_CAPABLE: u32 = 1 << 3;

impl Gicc<'_> {
    fn flags(&self) -> Result<u32, Error> {
        self.0.u32(GICC_FLAGS)
    }

    /// Whether the CPU can be started now.
    pub fn is_enabled(&self) -> Result<bool, Error> {
        Ok(self.flags()? & ENABLED != 0)
    }

    /// Whether the CPU could be added later.
    pub fn is_online_capable(&self) -> Result<bool, Error> {
        Ok(self.flags()? & ONLINE_CAPABLE != 0)
    }

    /// Returns the CPU's affinity, in the layout of MPIDR_EL1.
    pub fn mpidr(&self) -> Result<u64, Error> {
        self.0.u64(GICC_MPIDR)
    }

    /// Returns the address of the CPU's mailbox in the parking protocol, or 0.
    pub fn mailbox_address(&self) -> Result<u64, Error> {
        self.0.u64(GICC_PARKED)
    }

    /// Returns the address of the CPU's redistributor, or 0.
    pub fn redistributor_base(&self) -> Result<u64, Error> {
        self.0.u64(GICC_REDISTRIBUTOR)
    }

    /// Returns the INTID of the CPU's maintenance interrupt, or 0.
    pub fn maintenance_intid(&self) -> Result<u32, Error> {
        self.0.u32(GICC_MAINTENANCE)
    }
}

/// One structure.
#[derive(Clone, Copy, Debug)]
pub enum Structure<'t> {
    /// GIC CPU Interface.
    Cpu(Gicc<'t>),
    /// GIC Distributor (5.2.12.15).
    Distributor(View<'t>),
    /// A GIC Redistributor structure, which describes a range of redistributors (5.2.12.17).
    Redistributors(View<'t>),
    /// GIC Interrupt Translation Service (5.2.12.18).
    Its(View<'t>),
    /// A structure of any other type.
    Other,
}

/// The table; each of its structures is at least as long as its type requires.
#[derive(Clone, Copy, Debug)]
pub struct Madt<'t> {
    view: View<'t>,
}

impl<'t> Madt<'t> {
    /// Checks that the table divides into structures.
    pub fn new(view: View<'t>) -> Result<Self, Error> {
        view.check_length(FIRST, "44 bytes or more")?;
        let madt = Self { view };
        let mut offset = FIRST;
        while offset < view.len() {
            offset += madt.structure_at(offset)?.1;
        }
        Ok(madt)
    }

    /// Returns the error for a table that lacks a structure.
    pub fn missing_structure(&self, expected: &'static str) -> Error {
        self.view.defect(self.view.len(), expected, 0_u64)
    }

    /// Iterates over all structures.
    pub fn structures(&self) -> impl Iterator<Item = Structure<'t>> {
        let madt = *self;
        let mut offset = FIRST;
        core::iter::from_fn(move || {
            let (structure, length) = madt.structure_at(offset).ok()?;
            offset += length;
            Some(structure)
        })
    }

    /// Iterates over the GICC structures.
    pub fn cpus(&self) -> impl Iterator<Item = Gicc<'t>> {
        self.structures().filter_map(|structure| match structure {
            Structure::Cpu(cpu) => Some(cpu),
            _ => None,
        })
    }

    /// Returns the structure at `offset`, and its length, which is not 0.
    fn structure_at(&self, offset: usize) -> Result<(Structure<'t>, usize), Error> {
        let view = self.view;
        let kind = view.u8(offset)?;
        let length = view.u8(offset + 1)?;
        let defect = |expected| view.defect(offset + 1, expected, length);
        let (shortest, expected) = match kind {
            // 76 bytes in ACPI 5.1, 80 since 6.0, 82 since 6.5.
            0xb => (76, "76 bytes or more of a GICC structure"),
            0xc => (24, "24 bytes of a GICD structure"),
            0xe => (16, "16 bytes of a GICR structure"),
            0xf => (20, "20 bytes of a GIC ITS structure"),
            _ => (2, "2 bytes or more of a structure"),
        };
        if length < shortest {
            return Err(defect(expected));
        }
        let part = view
            .sub_view(offset, usize::from(length))
            .ok_or_else(|| defect("a structure that ends within the table"))?;
        let structure = match kind {
            0xb => Structure::Cpu(Gicc(part)),
            0xc => Structure::Distributor(part),
            0xe => Structure::Redistributors(part),
            0xf => Structure::Its(part),
            _ => Structure::Other,
        };
        Ok((structure, usize::from(length)))
    }
}
