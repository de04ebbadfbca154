// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register blocks that a description assigns to devices: each must be addressable, outside RAM and
//! disjoint from the others.

use core::fmt;

use arrayvec::ArrayVec;

use crate::{MAX_CPUS, Region};

/// The highest possible end of physical addresses: the map of EL2 covers 48 bits.
pub const END: u64 = 1 << 48;
/// Size and alignment of the GIC's frames (IHI 0069H, 12.10).
pub const FRAME: u64 = 0x1_0000;
/// Maximum number of interrupt translation services claimed.
pub const MAX_ITS: usize = 16;
/// Bytes of a page, in which devices are mapped.
pub const PAGE: u64 = 0x1000;

/// Distributor, redistributors, translation services and UART.
pub type Claimed = ArrayVec<Region, { MAX_CPUS + MAX_ITS + 2 }>;

/// The reason why registers can't be at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The address is 0 or not a multiple of this.
    Unaligned(u64),
    /// The registers end above what a CPU can address.
    TooHigh,
    /// The registers are in RAM.
    InRam,
    /// The registers overlap another device's registers.
    Shared,
    /// There are more devices than fit into [`Claimed`].
    TooMany,
}

impl Unfit {
    /// Returns why no registers can be in `region`; `None` if they can.
    #[must_use]
    pub fn check_region(region: Region, align: u64, end: u64, ram: &[Region]) -> Option<Self> {
        let Region { base, size } = region;
        if base == 0 || !base.is_multiple_of(align) {
            return Some(Self::Unaligned(align));
        }
        let mapped = base.checked_add(size.max(PAGE));
        if mapped.is_none_or(|mapped| mapped > end) {
            return Some(Self::TooHigh);
        }
        let in_ram = ram.iter().any(|bank| bank.overlaps(&region));
        in_ram.then_some(Self::InRam)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unaligned(FRAME) => "is not aligned to 64 KiB",
            Self::Unaligned(PAGE) => "is not aligned to 4 KiB",
            Self::Unaligned(_) => "is not aligned to its accesses",
            Self::TooHigh => "ends above the physical addresses",
            Self::InRam => "is in RAM",
            Self::Shared => "is in another device's registers",
            Self::TooMany => "is one device too many",
        })
    }
}

/// The claimed blocks so far.
#[derive(Debug)]
pub struct Claims<'a> {
    ram: &'a [Region],
    end: u64,
    claimed: &'a mut Claimed,
}

impl<'a> Claims<'a> {
    /// Returns an empty list of claims, for a machine with RAM `ram` whose physical addresses end at `end`. Claims
    /// go into `claimed`.
    pub fn new(ram: &'a [Region], end: u64, claimed: &'a mut Claimed) -> Self {
        claimed.clear();
        Self { ram, end, claimed }
    }

    /// Takes `region`, whose base has to be a multiple of `align`.
    ///
    /// # Errors
    /// Returns [`Unfit`] if the registers can't be in the region.
    pub fn claim(&mut self, region: Region, align: u64) -> Result<Region, Unfit> {
        if let Some(unfit) = Unfit::check_region(region, align, self.end, self.ram) {
            return Err(unfit);
        }
        if self.claimed.iter().any(|other| other.overlaps(&region)) {
            return Err(Unfit::Shared);
        }
        let taken = self.claimed.try_push(region);
        taken.map(|()| region).map_err(|_| Unfit::TooMany)
    }
}
