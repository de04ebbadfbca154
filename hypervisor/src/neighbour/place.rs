// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a neighbour's memory and its stage-2 map, which maps only this memory, from address 0 on.
//!
//! | IPA | what |
//! |---|---|
//! | `0x0000` | the neighbour's program ([`super::program`]) |
//! | `0x1000` | its vectors |
//! | `0x2000` | a stage-1 table, for a program that turns stage 1 on: one block of 1 GiB, mapped at the same addresses |
//! | `0x3000` | the words that hold its counts |
//! | `0x4000` | the memory that it works through |

use pages::{PAGE, Pool};
use platform::Region;

use crate::cpu::tenant::Tenant;
use crate::machine::memory::GuestMap;

/// Offset of the neighbour's program.
pub const CODE: u64 = 0;
/// Offset of the vectors of the neighbour's program.
pub const VECTORS: u64 = PAGE;
/// Offset of the neighbour's stage-1 table.
pub const TABLE: u64 = 2 * PAGE;
/// Offset of the words that hold the neighbour's counts.
pub const COUNTS: u64 = 3 * PAGE;
/// Offset of the memory that the neighbour works through.
pub const BUFFER: u64 = 4 * PAGE;

/// VMID of every neighbour. Each CPU has one neighbour, with a map of its own: without
/// VTTBR_EL2.CnP, TLB entries of one CPU are not used by another (DDI 0487K.a, D8.17.3).
const VMID: u64 = 2;

/// Pages of a stage-2 map: one of level 1, one of level 2, and as many of level 3 as the largest
/// neighbour needs, wherever its memory begins.
const TABLES: u64 = 2 + (BUFFER + abi::neighbour::MAX_KIB as u64 * 1024).div_ceil(512 * PAGE) + 1;

/// Returns how many bytes of memory a neighbour needs to work through `kib` KiB.
const fn memory_size(kib: u32) -> u64 {
    BUFFER + (kib as u64) * 1024
}

/// Returns how many bytes of the page pool a neighbour of `kib` KiB takes.
pub const fn pool_bytes(kib: u32) -> u64 {
    (size_of::<Tenant>() as u64).next_multiple_of(PAGE) + memory_size(kib) + TABLES * PAGE
}

/// Makes a neighbour of `kib` KiB.
pub fn make_neighbour(pool: &mut Pool, kib: u32) -> &'static Tenant {
    let size = memory_size(kib);
    let base = pool.take(size);
    let memory = Region { base, size };
    let mut map = GuestMap::new(pool);
    map.map_ram(0, memory);
    let stage2 = map.stage2_registers(VMID);
    &pool.fill([Tenant::new(memory, stage2)].into_iter())[0]
}

/// Returns the doubleword at `offset` of a neighbour's memory.
pub fn memory_word(tenant: &Tenant, offset: u64) -> &core::sync::atomic::AtomicU64 {
    assert!(offset + 8 <= tenant.memory.size && offset.is_multiple_of(8));
    let place = (tenant.memory.base + offset) as *const core::sync::atomic::AtomicU64;
    // SAFETY: this is an aligned doubleword of the neighbour's memory, which EL2 maps and never gives back.
    unsafe { &*place }
}
