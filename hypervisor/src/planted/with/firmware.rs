// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imitates faults that firmware may have in its tables and services, while firmware is still in charge, if the boot
//! argument `rouse.fault` asks for one. The offsets are from the ACPI specification 6.5, 5.2.5 to 5.2.8, and from
//! the SPCR.

use core::ptr;
use core::slice;

use acpi::{Listed, MAX_LISTED};
use arch::layout;
use arrayvec::ArrayVec;
use plan::{Fault, FirmwareFault};
use uefi::boot::{self, AllocateType, MemoryType};
use uefi::{Status, table};

use super::asked::asked_fault;
use crate::boot::efi::tables::{self, Source};
use crate::say;

/// Offsets in the header of a table, and its size.
const LENGTH: usize = 4;
const CHECKSUM: usize = 9;
const HEADER: usize = 36;
/// Offsets in the SPCR.
const INTERFACE: usize = 36;
const ADDRESS: usize = 44;
/// Offsets in the RSDP, and its size.
const RSDP_XSDT: u64 = 24;
const RSDP_EXTENDED_CHECKSUM: u64 = 32;
const RSDP_SIZE: usize = 36;
/// The GTDT field with the first platform timer's offset (5.2.25). Offsets in a generic watchdog's
/// timer structure: its control frame's address, and its flags (5.2.25.2).
const PLATFORM_TIMERS_AT: usize = 92;
const CONTROL: usize = 12;
const WATCHDOG_FLAGS: usize = 24;
/// Offset in the control frame: the upper bits of the watch period, which is half the number of
/// ticks until reset (DEN0094, chapter on the Generic Watchdog).
const WOR_HIGH: u64 = 0xc;
/// Size of UEFI's pages.
const PAGE: usize = 4096;

/// Causes the fault that is asked for, if that is a fault of firmware.
pub fn cause_fault() {
    let Some(Fault::Firmware(fault)) = asked_fault() else {
        return;
    };
    let done = match fault {
        FirmwareFault::SpcrDamaged => change_spcr(|spcr| spcr[CHECKSUM] ^= 1),
        FirmwareFault::SpcrShort => change_spcr(|spcr| {
            let (short, _) = spcr.split_at_mut(HEADER + 4);
            let length = short.len() as u32;
            short[LENGTH..LENGTH + 4].copy_from_slice(&length.to_le_bytes());
            fix_checksum(short);
        }),
        FirmwareFault::SpcrNowhere => change_spcr(|spcr| {
            spcr[ADDRESS..ADDRESS + 8].fill(0);
            fix_checksum(spcr);
        }),
        FirmwareFault::SpcrUnknown => change_spcr(|spcr| {
            spcr[INTERFACE] = 0x55;
            fix_checksum(spcr);
        }),
        FirmwareFault::SpcrMissing => remove_spcr(),
        FirmwareFault::MadtDamaged => change_table(b"APIC", |madt| madt[CHECKSUM] ^= 1),
        FirmwareFault::TablesMoved => move_tables(),
        FirmwareFault::NoWatchdog => refuse_watchdog(),
        FirmwareFault::WatchdogRuns => change_watchdog(|frames| {
            let control = u64::from_le_bytes(*frames[CONTROL..].first_chunk()?);
            // SAFETY: this is the device that the table describes, which firmware has mapped and does not use.
            unsafe {
                ((control + WOR_HIGH) as *mut u32).write_volatile(u16::MAX.into());
                (control as *mut u32).write_volatile(1);
            }
            Some(())
        }),
        FirmwareFault::WatchdogSecure => change_watchdog(|frames| {
            *frames.get_mut(WATCHDOG_FLAGS)? |= 1 << 2;
            Some(())
        }),
        FirmwareFault::WatchdogInRam => change_watchdog(|frames| {
            let ram = layout::base() & !0xfff;
            frames[CONTROL..CONTROL + 8].copy_from_slice(&ram.to_le_bytes());
            Some(())
        }),
    };
    match done {
        Some(()) => say!("firmware leaves {fault}"),
        None => say!("firmware has nothing to leave {fault} in"),
    }
}

/// Returns the address of the RSDP, and the tables that it lists.
fn listed_tables() -> Option<(u64, ArrayVec<Listed, MAX_LISTED>)> {
    let Source::Acpi(rsdp) = tables::find_description() else {
        return None;
    };
    let map = boot::memory_map(MemoryType::LOADER_DATA).ok()?;
    Some((rsdp, acpi::list(&tables::Mapped(&map), rsdp)))
}

/// Returns the bytes of a table.
fn table_bytes(of: &Listed) -> &'static mut [u8] {
    // SAFETY: firmware has filled this memory, and nothing else refers to it while this runs.
    unsafe { slice::from_raw_parts_mut(of.place.base as *mut u8, of.place.size as usize) }
}

/// Changes the bytes of the SPCR through `change`.
fn change_spcr(change: impl FnOnce(&mut [u8])) -> Option<()> {
    change_table(b"SPCR", change)
}

/// Changes the bytes of the table with `signature` through `change`.
fn change_table(signature: &[u8; 4], change: impl FnOnce(&mut [u8])) -> Option<()> {
    let (_, listed) = listed_tables()?;
    let found = listed.iter().find(|one| &one.signature == signature)?;
    change(table_bytes(found));
    Some(())
}

/// Zeroes the SPCR's entry in the XSDT, as some firmware does with entries that it does not use.
fn remove_spcr() -> Option<()> {
    let (_, listed) = listed_tables()?;
    let found = listed.iter().find(|one| &one.signature == b"SPCR")?;
    let xsdt = table_bytes(listed.first()?);
    change_entries(
        xsdt,
        |entry| {
            if entry == found.place.base { 0 } else { entry }
        },
    );
    Some(())
}

/// Reserves memory, which firmware takes from the end of RAM, and copies the tables, unaligned, to
/// the end of that memory.
fn move_tables() -> Option<()> {
    let (rsdp, listed) = listed_tables()?;
    let size = listed
        .iter()
        .map(|one| 1 + one.place.size as usize)
        .sum::<usize>();
    let pages = size.div_ceil(PAGE);
    let memory = boot::allocate_pages(AllocateType::AnyPages, MemoryType::RESERVED, pages).ok()?;
    let end = memory.as_ptr() as u64 + (pages * PAGE) as u64;
    let mut moved: ArrayVec<(u64, u64), MAX_LISTED> = ArrayVec::new();
    let mut at = end - size as u64;
    for one in &listed {
        // The copy gets an odd address, or the address after one.
        at += 1;
        // SAFETY: the copy is within the pages that firmware gave; the source is a table.
        unsafe {
            ptr::copy_nonoverlapping(
                one.place.base as *const u8,
                at as *mut u8,
                one.place.size as usize,
            )
        };
        moved.push((one.place.base, at));
        at += one.place.size;
    }
    let &(_, xsdt) = moved.first()?;
    let length = listed.first()?.place.size as usize;
    // SAFETY: this is the copy that was made above.
    let copy = unsafe { slice::from_raw_parts_mut(xsdt as *mut u8, length) };
    change_entries(copy, |entry| {
        let new = moved.iter().find(|(old, _)| *old == entry);
        new.map_or(entry, |(_, new)| *new)
    });
    // SAFETY: this is firmware's RSDP, which has had these bytes since ACPI 2.0.
    unsafe {
        ((rsdp + RSDP_XSDT) as *mut u64).write_unaligned(xsdt);
        let checksum = (rsdp + RSDP_EXTENDED_CHECKSUM) as *mut u8;
        checksum.write(0);
        checksum.write(negated_sum(slice::from_raw_parts(
            rsdp as *const u8,
            RSDP_SIZE,
        )));
    }
    say!("tables at {xsdt:#x}..{end:#x}");
    Some(())
}

/// Makes firmware's SetWatchdogTimer return UNSUPPORTED.
fn refuse_watchdog() -> Option<()> {
    unsafe extern "efiapi" fn unsupported(_: usize, _: u64, _: usize, _: *const u16) -> Status {
        Status::UNSUPPORTED
    }
    let system = table::system_table_raw()?;
    // SAFETY: these are firmware's tables, which are in memory that can be written, and which firmware does not read
    // itself.
    unsafe {
        let services = system.as_ref().boot_services;
        (*services).set_watchdog_timer = unsupported;
    }
    Some(())
}

/// Changes the first watchdog in the GTDT, or that device itself, through `change`.
fn change_watchdog(change: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<()> {
    let (_, listed) = listed_tables()?;
    let found = listed.iter().find(|one| &one.signature == b"GTDT")?;
    let gtdt = table_bytes(found);
    let at = u32::from_le_bytes(*gtdt[PLATFORM_TIMERS_AT..].first_chunk()?);
    let frames = gtdt
        .get_mut(at as usize..)
        .filter(|frames| frames.first() == Some(&1))?;
    change(frames)?;
    fix_checksum(gtdt);
    Some(())
}

/// Replaces each entry of an XSDT by the result of `new` for it.
fn change_entries(xsdt: &mut [u8], new: impl Fn(u64) -> u64) {
    let (entries, _) = xsdt[HEADER..].as_chunks_mut::<8>();
    for entry in entries {
        *entry = new(u64::from_le_bytes(*entry)).to_le_bytes();
    }
    fix_checksum(xsdt);
}

/// Corrects the checksum of `table`.
fn fix_checksum(table: &mut [u8]) {
    table[CHECKSUM] = 0;
    table[CHECKSUM] = negated_sum(table);
}

/// Returns the byte that makes the sum of all bytes 0.
fn negated_sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}
