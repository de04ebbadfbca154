// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as its ACPI tables describe it, read into [`Platform`].
//!
//! Sections are those of the ACPI specification, release 6.5, unless another
//! document is named. RSDP, XSDT, FADT, MADT, GTDT and SPCR are read; every
//! other table is only looked at to know that it is another one. ACPI does not
//! say where RAM is: the caller does, from the UEFI memory map.
//!
//! What a table says is believed only if its length and checksum are right and
//! nothing in it contradicts the rest; otherwise the machine is refused with an
//! [`Error`] that names table, offset and expectation. What is no defect but is
//! worth printing at the first boot on a machine is in [`Notes`].
//!
//! The crate touches no register, allocates nothing and never panics.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod claims;
mod cpus;
mod error;
mod fadt;
mod gic;
mod gtdt;
mod madt;
mod ram;
mod root;
mod spcr;
mod view;

use arrayvec::ArrayVec;
use platform::Platform;

pub use error::{Error, Table};
pub use ram::Ram;

use claims::Claims;
use madt::Madt;

/// The most interrupt translation services that [`Notes`] lists.
pub const MAX_ITS: usize = 16;

/// Physical memory, as far as tables can lie in it.
pub trait Tables {
    /// The `length` bytes from physical address `address` on; `None` if they
    /// are not all readable memory. Tables and their fields have no alignment,
    /// so the memory must be mapped as Normal memory.
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]>;
}

/// A machine and what else its tables say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// The machine.
    pub platform: Platform<'a>,
    /// What has no place in it.
    pub notes: Notes,
}

/// Facts of the tables that [`Platform`] has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// OEMID of the XSDT, as it stands there.
    pub oem: [u8; 6],
    /// OEM Table ID of the XSDT, as it stands there.
    pub oem_table: [u8; 8],
    /// Tables that are not read here and whose length or checksum is wrong.
    pub damaged: usize,
    /// GIC version of the GICD structure: 3, 4, or 0 for "look it up yourself".
    pub gic_version: u8,
    /// The redistributors are described CPU by CPU (GICC) and not in ranges (GICR).
    pub redistributor_per_cpu: bool,
    /// No CPU names a maintenance interrupt, and the usual INTID was taken.
    pub maintenance_assumed: bool,
    /// CPUs that are off and could be added at run time; they are not used.
    pub online_capable: usize,
    /// CPUs that are described and unusable, such as harvested cores.
    pub unusable: usize,
    /// CPUs, of those in use, with a mailbox of the parking protocol.
    pub parked: usize,
    /// Physical addresses of the interrupt translation services.
    pub its: ArrayVec<u64, MAX_ITS>,
    /// Interrupt translation services beyond [`MAX_ITS`].
    pub its_ignored: usize,
    /// Interface type of the SPCR, also where it is a type not known here.
    pub uart_type: Option<u8>,
}

/// Reads the machine from the tables that the RSDP at physical address `rsdp`
/// leads to. `ram` and `bootargs` come from the loader.
///
/// # Errors
/// An [`Error`] that says what is missing or wrong, and where.
pub fn read<'a>(
    tables: &impl Tables,
    rsdp: u64,
    ram: &Ram,
    bootargs: &'a str,
) -> Result<Description<'a>, Error> {
    let found = root::find(tables, rsdp)?;
    let madt = Madt::new(found.madt)?;
    let psci = fadt::psci(&found.fadt)?;
    let cpus = cpus::read(&madt, psci)?;
    let mut claims = Claims::new(ram.memory()?);
    let gic = gic::read(&madt, &mut claims)?;
    let timer = gtdt::read(&found.gtdt, gic.gic.maintenance)?;
    let console = match &found.spcr {
        Some(spcr) => Some(spcr::read(spcr, &mut claims)?),
        None => None,
    };
    Ok(Description {
        notes: Notes {
            oem: found.xsdt.array(view::OEM_ID)?,
            oem_table: found.xsdt.array(view::OEM_TABLE_ID)?,
            damaged: found.damaged,
            gic_version: gic.version,
            redistributor_per_cpu: gic.per_cpu,
            maintenance_assumed: gic.maintenance_assumed,
            online_capable: cpus.online_capable,
            unusable: cpus.unusable,
            parked: cpus.parked,
            its: gic.its,
            its_ignored: gic.its_ignored,
            uart_type: console.map(|console| console.interface),
        },
        platform: Platform {
            cpus: cpus.list,
            cpus_ignored: cpus.ignored,
            memory: ram.memory.clone(),
            reserved: ram.reserved.clone(),
            gic: gic.gic,
            timer,
            uart: console.and_then(|console| console.uart),
            psci,
            bootargs,
        },
    })
}
