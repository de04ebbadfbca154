// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds firmware's tables that describe the machine, and reads them safely.

use aarch64_cpu::registers::{CurrentEL, Readable};
use acpi::Tables;
use arch::insn;
use uefi::boot::MemoryType;
use uefi::mem::memory_map::MemoryMap;
use uefi::table::cfg::ConfigTableEntry;
use uefi::{Guid, guid, system};

use super::memory::region_of;

/// GUID of the configuration table that is a flattened device tree (Embedded Base Boot Requirements
/// 2.1, 2.3).
const TREE: Guid = guid!("b1b621d5-f19c-41a5-830b-d9152c69aae0");

/// Where the description of the machine is.
pub enum Source {
    /// The physical address of the RSDP of ACPI 2.0 or later.
    Acpi(u64),
    /// The physical address of a device tree.
    Tree(u64),
    /// There is no description.
    Nothing,
}

/// Searches the configuration tables. If they have both ACPI tables and a device tree, takes ACPI: servers promise
/// to describe themselves with it (DEN0044, Server Base Boot Requirements), and an additional tree is often a
/// leftover.
pub fn find_description() -> Source {
    system::with_config_table(|tables| {
        let address = |guid| {
            let table = tables.iter().find(|table| table.guid == guid);
            table.map(|table| table.address as u64)
        };
        match (address(ConfigTableEntry::ACPI2_GUID), address(TREE)) {
            (Some(rsdp), _) => Source::Acpi(rsdp),
            (None, Some(tree)) => Source::Tree(tree),
            (None, None) => Source::Nothing,
        }
    })
}

/// Memory that is read only where firmware's memory map lists memory.
pub struct Mapped<'m, M: MemoryMap>(pub &'m M);

impl<M: MemoryMap> Mapped<'_, M> {
    /// Returns the end of the map's entry that contains `address`, if that entry is memory.
    fn end_of_memory(&self, address: u64) -> Option<u64> {
        let devices = [
            MemoryType::MMIO,
            MemoryType::MMIO_PORT_SPACE,
            MemoryType::UNUSABLE,
        ];
        let entry = self
            .0
            .entries()
            .find(|entry| region_of(entry).contains(address))?;
        (!devices.contains(&entry.ty)).then(|| region_of(entry).end())
    }
}

impl<M: MemoryMap> Tables for Mapped<'_, M> {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let end = address.checked_add(length as u64)?;
        let mut at = address;
        while at < end {
            at = self.end_of_memory(at)?;
        }
        // The map gives the type of memory, but does not guarantee that the memory can be read.
        let pages = (address & !0xfff..end).step_by(0x1000);
        for page in pages {
            if !can_read(page) {
                return None;
            }
        }
        // SAFETY: firmware's map says that this is memory, and the running translation
        // lets this level read it; firmware does not change tables while an application
        // runs.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, length) })
    }
}

/// Whether firmware's translation lets the running level read at `address`.
fn can_read(address: u64) -> bool {
    match CurrentEL.read(CurrentEL::EL) {
        1 => insn::el1_can_read(address),
        _ => insn::el2_can_read(address),
    }
}
