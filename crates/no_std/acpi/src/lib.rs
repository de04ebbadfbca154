// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the machine from its ACPI tables into [`Platform`].
//!
//! Sections are those of the ACPI specification, release 6.5, unless another document is named. The
//! crate reads RSDP, XSDT, FADT, MADT, GTDT, SPCR and DBG2; of every other table, it only checks
//! the length and checksum. ACPI does not describe the RAM: the caller passes a description of it,
//! from the UEFI memory map.
//!
//! A table is accepted only if its length and checksum are right and nothing in it contradicts the
//! rest; otherwise the crate refuses the machine with an [`Error`] that names the table, the offset
//! and the expected value. [`Notes`] has facts that are not defects but are worth printing at the
//! first boot on a machine.
//!
//! The crate touches no register, allocates nothing and never panics.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod cpus;
mod dbg2;
mod error;
mod fadt;
mod gic;
mod gicv2;
mod gtdt;
mod list;
mod madt;
mod notes;
mod ram;
mod root;
mod spcr;
mod view;

use platform::{Claims, Firmware, Gic, Platform, Room, Watchdogs};

pub use error::{Error, Table};
pub use list::{Listed, MAX_LISTED, conduit, console, list};
pub use notes::{Notes, Tolerated};
pub use ram::Ram;

use madt::Madt;

/// Access to the physical memory that can contain tables.
pub trait Tables {
    /// Returns the `length` bytes from physical address `address` on, or `None` if they are not all
    /// readable memory. Tables and their fields need not be aligned, so the memory must be mapped as
    /// Normal memory.
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]>;
}

/// A machine, and further facts in its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// The machine.
    pub platform: Platform<'a>,
    /// Findings that have no place in `platform`.
    pub notes: Notes,
}

/// Reads the machine from the tables that the RSDP at physical address `rsdp`
/// leads to; its lists go into `room`. `ram` and `bootargs` come from the loader.
///
/// # Errors
/// Returns an [`Error`] that names what is missing or wrong, and where.
pub fn read<'a>(
    tables: &impl Tables,
    rsdp: u64,
    ram: &Ram,
    bootargs: &'a str,
    room: &'a mut Room,
) -> Result<Description<'a>, Error> {
    let found = root::find_tables(tables, rsdp)?;
    let madt = Madt::new(found.madt)?;
    let mut tolerated = Tolerated::default();
    let psci = fadt::psci_conduit(&found.fadt, &mut tolerated)?;
    room.clear();
    let cpus = cpus::read(&madt, psci, room, &mut tolerated)?;
    let mut claims = Claims::new(ram.memory()?, room.end, &mut room.claimed);
    let gic = gic::read(&madt, &room.cpus, &mut claims, &mut room.redistributors)?;
    let timer = gtdt::read(&found.gtdt, gic.maintenance, &mut tolerated)?;
    let mut watchdogs = Watchdogs::default();
    let wrong_watchdogs = gtdt::add_watchdogs(&found.gtdt, &mut watchdogs).err();
    // Without a console in the tables, the machine can still be used with one that the boot
    // arguments name.
    let console = dbg2::choose_console(found.spcr, found.dbg2, &mut claims);
    let room: &Room = room;
    Ok(Description {
        notes: Notes {
            oem: found.xsdt.bytes_at(view::OEM_ID)?,
            oem_table: found.xsdt.bytes_at(view::OEM_TABLE_ID)?,
            damaged: found.damaged,
            gic_version: gic.version,
            version2: gic.version2.is_some(),
            redistributor_per_cpu: gic.per_cpu,
            maintenance_assumed: gic.maintenance_assumed,
            online_capable: cpus.online_capable,
            unusable: cpus.unusable,
            parked: cpus.parked,
            its: gic.its,
            its_ignored: gic.its_ignored,
            tolerated,
            uart_type: console.interface,
            wrong_console: console.wrong,
            wrong_watchdogs,
        },
        platform: Platform {
            cpus: &room.cpus,
            cpus_ignored: room.ignored,
            memory: ram.memory.clone(),
            reserved: ram.reserved.clone(),
            gic: Gic {
                distributor: gic.distributor,
                version2: gic.version2,
                redistributors: &room.redistributors,
                stride: gic.stride,
                maintenance: gic.maintenance,
            },
            timer,
            watchdogs,
            uart: console.uart,
            psci,
            bootargs,
            hypervisor: fadt::hypervisor_name(&found.fadt),
            described_by: Firmware::Acpi,
        },
    })
}
