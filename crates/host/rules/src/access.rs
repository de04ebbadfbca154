// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to memory.

use crate::finding::Place;
use crate::gic::Mapped;
use crate::lines::LINE;

/// A completed access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction that made the access.
    pub place: Place,
    /// The virtual address.
    pub address: u64,
    /// The physical address. `None` if the address belongs to a device.
    pub physical: Option<u64>,
    /// The accessed register of the interrupt controller, if any.
    pub gic: Option<Mapped>,
    /// The base-2 logarithm of the access's size in bytes.
    pub size: u8,
    /// Whether the access wrote to memory.
    pub store: bool,
    /// The base-2 logarithm of the alignment that the access would need in Device memory.
    pub alignment: u8,
    /// Whether the access is exclusive or atomic.
    pub exclusive: bool,
    /// Whether the instruction is DC ZVA, which writes a whole line of memory.
    pub whole: bool,
}

impl Access {
    /// Returns a mask with a bit for each accessed byte of the line. Bytes in the next line are left out.
    #[must_use]
    pub fn byte_mask(&self) -> u64 {
        let many = 1u32.checked_shl(self.size.into()).unwrap_or(u32::MAX);
        if self.whole || many >= u64::BITS {
            return u64::MAX;
        }
        ((1 << many) - 1) << (self.address % LINE)
    }
}
