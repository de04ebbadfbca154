// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address ranges that tables give to devices: no two may share an address,
//! and none may lie in RAM.

use arrayvec::ArrayVec;
use platform::{MAX_CPUS, Region};

use crate::MAX_ITS;
use crate::error::Error;
use crate::view::View;

/// Where physical addresses end: 48 bits are what the EL2 map covers.
const END: u64 = 1 << 48;

/// The ranges so far.
#[derive(Debug)]
pub struct Claims<'a> {
    ram: &'a [Region],
    /// Distributor, redistributors, translation services and UART.
    taken: ArrayVec<Region, { MAX_CPUS + MAX_ITS + 2 }>,
}

impl<'a> Claims<'a> {
    /// No device yet, and this RAM.
    pub fn new(ram: &'a [Region]) -> Self {
        Self {
            ram,
            taken: ArrayVec::new(),
        }
    }

    /// Takes `region`, whose base stands at `offset` of `view`; it must be a
    /// multiple of `align`, which `expected` says.
    pub fn take(
        &mut self,
        view: &View<'_>,
        offset: usize,
        region: Region,
        (align, expected): (u64, &'static str),
    ) -> Result<Region, Error> {
        let defect = |expected| view.defect(offset, expected, region.base);
        if region.base == 0 || !region.base.is_multiple_of(align) {
            return Err(defect(expected));
        }
        if region
            .base
            .checked_add(region.size)
            .is_none_or(|end| end > END)
        {
            return Err(defect("registers below address 2^48"));
        }
        if self.ram.iter().any(|ram| ram.overlaps(&region)) {
            return Err(defect("registers outside the RAM"));
        }
        if self.taken.iter().any(|taken| taken.overlaps(&region)) {
            return Err(defect("registers that overlap no other device's"));
        }
        self.taken
            .try_push(region)
            .map_err(|_| defect("no more devices than are counted here"))?;
        Ok(region)
    }
}
