// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds free memory in the UEFI memory map (UEFI Specification 2.10, 7.2).

use acpi::Ram;
use platform::Region;
use uefi::boot::{MemoryAttribute, MemoryDescriptor, MemoryType};
use uefi::mem::memory_map::MemoryMap;

/// Size of UEFI's pages in bytes, whatever the machine's granule.
const PAGE: u64 = 4096;

/// Returns the memory that `entry` describes.
pub fn region_of(entry: &MemoryDescriptor) -> Region {
    Region {
        base: entry.phys_start,
        size: entry.page_count.saturating_mul(PAGE),
    }
}

/// Whether `entry` is ordinary RAM that is free once firmware's services end. Free RAM includes
/// this image's own RAM.
fn is_free(entry: &MemoryDescriptor) -> bool {
    let free = [
        MemoryType::CONVENTIONAL,
        MemoryType::BOOT_SERVICES_CODE,
        MemoryType::BOOT_SERVICES_DATA,
        MemoryType::LOADER_CODE,
        MemoryType::LOADER_DATA,
    ];
    free.contains(&entry.ty)
        && entry.att.contains(MemoryAttribute::WRITE_BACK)
        && !entry.att.contains(MemoryAttribute::SPECIAL_PURPOSE)
}

/// Returns the free RAM in order of address: firmware lists it in any order, and in many
/// pieces.
pub fn free_ram(map: &impl MemoryMap) -> Ram {
    let mut ram = Ram::new();
    let mut from = 0;
    let free = || map.entries().filter(|entry| is_free(entry)).map(region_of);
    while let Some(next) = free()
        .filter(|region| region.base >= from && region.size > 0)
        .min_by_key(|region| region.base)
    {
        // A region that does not end within the address space is not RAM.
        let _ = ram.usable(next);
        from = next.end();
    }
    ram
}
