// SPDX-License-Identifier: MIT OR Apache-2.0
//! The type of memory that stage 1 gives an address.

use crate::decode::Operation;
use crate::rule::Now;
use crate::tables::{ADDRESS, below_of, leads_on};

/// A type of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any of the Device types.
    Device,
    /// Shareable write-back memory with allocation, on which the whole architecture works.
    Conventional,
    /// Any other Normal memory.
    Normal,
}

/// Logarithm of the bytes of a page.
const PAGE: u64 = 12;
/// Number of pages whose type a CPU caches.
const KEPT: usize = 16;

/// The types of pages that a CPU has used, until translations change.
#[derive(Debug, Default)]
pub struct Types {
    pages: [Option<(Page, Type)>; KEPT],
}

/// A page of a level's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    address: u64,
    level: u8,
    /// Number of TLBIs for all CPUs so far.
    invalidated: u64,
}

impl Types {
    /// Drops the cached types if `operation` may change translations.
    pub fn executed(&mut self, now: &Now<'_>, operation: Operation) {
        if changes(operation) {
            *self = Self::default();
        }
        if let Operation::Tlbi {
            broadcast: true, ..
        } = operation
        {
            now.shared.invalidate();
        }
    }

    /// Returns the type of `address` at the level of `now`. `None` without translation, or if the
    /// tables do not have the address.
    pub fn of(&mut self, now: &Now<'_>, address: u64) -> Option<Type> {
        let page = Page {
            address: address >> PAGE,
            level: now.place.level.max(1),
            invalidated: now.shared.invalidated(),
        };
        let kept = &mut self.pages[page.address as usize % KEPT];
        match *kept {
            Some((one, kind)) if one == page => Some(kind),
            _ => {
                let kind = look(now, page.level, address)?;
                *kept = Some((page, kind));
                Some(kind)
            }
        }
    }
}

/// Whether `operation` may change the type of memory of an address.
fn changes(operation: Operation) -> bool {
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

/// Walks the tables (DDI 0487K.a, D8.2 and D8.6).
fn look(now: &Now<'_>, level: u8, address: u64) -> Option<Type> {
    if level > 2 || !now.controls.translates(level) || address >> now.controls.bits(level) != 0 {
        return None;
    }
    let intermediate = level == 1;
    let locate = |address| now.shared.locate(address);
    let (mut table, mut at) = now.controls.root(level)?;
    table = below_of(table, intermediate, &locate)?;
    loop {
        let index = address >> (PAGE + 9 * u64::from(3 - at)) & 511;
        let descriptor = now.shared.read(table + 8 * index)?;
        if descriptor & 1 == 0 {
            return None;
        }
        if !leads_on(descriptor, at) {
            return Some(kind(now.controls.memory(level), descriptor));
        }
        table = below_of(descriptor & ADDRESS, intermediate, &locate)?;
        at += 1;
    }
}

/// Returns the type from the attribute index and SH of a block or page, and from MAIR.
fn kind(types: u64, descriptor: u64) -> Type {
    let attributes = types >> (8 * (descriptor >> 2 & 7)) & 0xff;
    let shareable = descriptor >> 8 & 3 >= 2;
    match attributes {
        _ if attributes & 0xf0 == 0 => Type::Device,
        0xff if shareable => Type::Conventional,
        _ => Type::Normal,
    }
}
