// SPDX-License-Identifier: MIT OR Apache-2.0
//! A neighbour's memory, and its stage-2 map: nothing but this memory, from address 0 on.
//!
//! | IPA | what |
//! |---|---|
//! | `0x0000` | its program ([`super::program`]) |
//! | `0x1000` | its stage-1 table: one block of 1 GiB, at the same addresses |
//! | `0x2000` | what it counts |
//! | `0x3000` | memory that it goes through |

use pages::{PAGE, Pool};
use platform::Region;

use crate::cpu::tenant::Tenant;
use crate::machine::memory::GuestMap;

/// Its program.
pub const CODE: u64 = 0;
/// Its stage-1 table.
pub const TABLE: u64 = PAGE;
/// Offset of the words that it counts in.
pub const COUNTS: u64 = 2 * PAGE;
/// Offset of the memory that it goes through.
pub const BUFFER: u64 = 3 * PAGE;

/// VMID of every neighbour. Each CPU has one, with a map of its own: without VTTBR_EL2.CnP, TLB
/// entries of one CPU are not used by another (DDI 0487K.a, D8.17.3).
const VMID: u64 = 2;

/// Pages of a stage-2 map: one of level 1, one of level 2, and as many of level 3 as the largest
/// neighbour takes, wherever it begins.
const TABLES: u64 = 2 + (BUFFER + abi::neighbour::MAX_KIB as u64 * 1024).div_ceil(512 * PAGE) + 1;

/// Bytes of memory of a neighbour that goes through `kib` KiB.
const fn size(kib: u32) -> u64 {
    BUFFER + (kib as u64) * 1024
}

/// Bytes of the page pool that a neighbour of `kib` KiB takes.
pub const fn needs(kib: u32) -> u64 {
    (size_of::<Tenant>() as u64).next_multiple_of(PAGE) + size(kib) + TABLES * PAGE
}

/// Makes a neighbour of `kib` KiB.
pub fn make(pool: &mut Pool, kib: u32) -> &'static Tenant {
    let size = size(kib);
    let base = pool.take(size);
    let memory = Region { base, size };
    let mut map = GuestMap::new(pool);
    map.map_ram(0, memory);
    let stage2 = map.registers(VMID);
    &pool.fill([Tenant::new(memory, stage2)].into_iter())[0]
}

/// The doubleword at `offset` of a neighbour's memory.
pub fn word(tenant: &Tenant, offset: u64) -> &core::sync::atomic::AtomicU64 {
    assert!(offset + 8 <= tenant.memory.size && offset.is_multiple_of(8));
    let place = (tenant.memory.base + offset) as *const core::sync::atomic::AtomicU64;
    // SAFETY: an aligned doubleword of its memory, which EL2 maps and never gives back.
    unsafe { &*place }
}
