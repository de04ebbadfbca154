// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to memory.

use crate::finding::Place;
use crate::gic::Mapped;
use crate::lines::LINE;

/// An access to memory that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction.
    pub place: Place,
    /// The address that it was made to.
    pub address: u64,
    /// The physical address; `None` for a device.
    pub physical: Option<u64>,
    /// The register of the interrupt controller, if it is one.
    pub gic: Option<Mapped>,
    /// The logarithm of how many bytes it is of.
    pub size: u8,
    /// It wrote.
    pub store: bool,
    /// The logarithm of what it has to be aligned to on Device memory.
    pub alignment: u8,
    /// It is exclusive or atomic.
    pub exclusive: bool,
    /// It is DC ZVA: it writes the whole line.
    pub whole: bool,
}

impl Access {
    /// Its bytes within their line, a bit for each. Bytes of the next line are left out.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let many = 1u32.checked_shl(self.size.into()).unwrap_or(u32::MAX);
        if self.whole || many >= u64::BITS {
            return u64::MAX;
        }
        ((1 << many) - 1) << (self.address % LINE)
    }
}
