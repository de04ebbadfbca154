// SPDX-License-Identifier: MIT OR Apache-2.0
//! The type of memory that the stage 1 tables assign to an address.

use crate::decode::Operation;
use crate::rule::Now;
use crate::tables::{ADDRESS, points_to_table, table_below};

/// A type of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any of the Device types.
    Device,
    /// Shareable write-back memory with allocation, on which every instruction of the architecture works.
    Conventional,
    /// Any other Normal memory.
    Normal,
}

/// Base-2 logarithm of the page size in bytes.
const PAGE: u64 = 12;
/// Number of pages whose type a CPU caches.
const KEPT: usize = 16;

/// Caches the memory types of the pages that a CPU has used, until translations change.
#[derive(Debug, Default)]
pub struct Types {
    pages: [Option<(Page, Type)>; KEPT],
}

/// A page of virtual addresses, in the translation regime of one exception level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    address: u64,
    level: u8,
    /// Number of broadcast TLBIs that had been executed by the time of the lookup.
    invalidated: u64,
}

impl Types {
    /// Drops the cached types if `operation` may change translations.
    pub fn drop_if_changed(&mut self, now: &Now<'_>, operation: Operation) {
        if may_change_type(operation) {
            *self = Self::default();
        }
        if let Operation::Tlbi {
            broadcast: true, ..
        } = operation
        {
            now.shared.count_tlbi();
        }
    }

    /// Returns the type of memory at `address`, for the exception level in `now`. Returns `None` if addresses are not
    /// translated at that level, or if its tables do not map the address.
    pub fn type_at(&mut self, now: &Now<'_>, address: u64) -> Option<Type> {
        let page = Page {
            address: address >> PAGE,
            level: now.place.level.max(1),
            invalidated: now.shared.tlbi_count(),
        };
        let kept = &mut self.pages[page.address as usize % KEPT];
        match *kept {
            Some((one, kind)) if one == page => Some(kind),
            _ => {
                let kind = walk_tables(now, page.level, address)?;
                *kept = Some((page, kind));
                Some(kind)
            }
        }
    }
}

/// Whether `operation` may change the memory type of an address.
fn may_change_type(operation: Operation) -> bool {
    use crate::register::*;
    matches!(
        operation,
        Operation::Tlbi { .. }
            | Operation::Write {
                register: SCTLR_EL1
                    | SCTLR_EL2
                    | TTBR0_EL1
                    | TTBR0_EL2
                    | TCR_EL1
                    | TCR_EL2
                    | MAIR_EL1
                    | MAIR_EL2
                    | VTTBR_EL2,
                ..
            }
    )
}

/// Walks the tables of `level`, and returns the memory type of `address` (DDI 0487K.a, D8.2 and D8.6).
fn walk_tables(now: &Now<'_>, level: u8, address: u64) -> Option<Type> {
    if level > 2
        || !now.controls.translates(level)
        || address >> now.controls.address_bits(level) != 0
    {
        return None;
    }
    let intermediate = level == 1;
    let locate = |address| now.shared.locate(address);
    let (mut table, mut at) = now.controls.root(level)?;
    table = table_below(table, intermediate, &locate)?;
    loop {
        let index = address >> (PAGE + 9 * u64::from(3 - at)) & 511;
        let descriptor = now.shared.read(table + 8 * index)?;
        if descriptor & 1 == 0 {
            return None;
        }
        if !points_to_table(descriptor, at) {
            return Some(memory_type(now.controls.mair(level), descriptor));
        }
        table = table_below(descriptor & ADDRESS, intermediate, &locate)?;
        at += 1;
    }
}

/// Returns the memory type that the attribute index and SH of a block or page descriptor select in MAIR.
fn memory_type(types: u64, descriptor: u64) -> Type {
    let attributes = types >> (8 * (descriptor >> 2 & 7)) & 0xff;
    let shareable = descriptor >> 8 & 3 >= 2;
    match attributes {
        _ if attributes & 0xf0 == 0 => Type::Device,
        0xff if shareable => Type::Conventional,
        _ => Type::Normal,
    }
}
