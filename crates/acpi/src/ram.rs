// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the loader says of the RAM, gathered region by region.

use arrayvec::ArrayVec;
use platform::Region;

use crate::error::Error;

/// RAM that may be used, and parts of it that are somebody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ram {
    pub(crate) memory: ArrayVec<Region, 16>,
    pub(crate) reserved: ArrayVec<Region, 32>,
}

impl Ram {
    /// No RAM yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds RAM. What follows directly on the region added before becomes part
    /// of it; of more regions than fit, the largest are kept.
    ///
    /// # Errors
    /// [`Error::Ram`] if the region does not end within the address space.
    pub fn usable(&mut self, region: Region) -> Result<(), Error> {
        check(region)?;
        if region.size == 0 {
            return Ok(());
        }
        if let Some(last) = self.memory.last_mut()
            && last.end() == region.base
        {
            last.size += region.size;
            return Ok(());
        }
        if self.memory.is_full() {
            self.drop_smallest(region.size);
        }
        // If nothing smaller was dropped, the new one is the smallest.
        let _ = self.memory.try_push(region);
        Ok(())
    }

    /// Adds a part that is somebody's and stays untouched.
    ///
    /// # Errors
    /// [`Error::Ram`] if the region does not end within the address space, or
    /// if there are more of them than [`platform::Platform`] holds.
    pub fn reserve(&mut self, region: Region) -> Result<(), Error> {
        check(region)?;
        if region.size == 0 {
            return Ok(());
        }
        let expected = "no more than 32 reserved regions";
        self.reserved
            .try_push(region)
            .map_err(|_| Error::Ram { region, expected })
    }

    /// The usable RAM, of which there must be some.
    pub(crate) fn memory(&self) -> Result<&[Region], Error> {
        if self.memory.is_empty() {
            let region = Region { base: 0, size: 0 };
            let expected = "some usable RAM";
            return Err(Error::Ram { region, expected });
        }
        Ok(&self.memory)
    }

    /// Drops the smallest region if it is smaller than `size`. The last one
    /// stays, as it may still grow.
    fn drop_smallest(&mut self, size: u64) {
        let closed = self.memory.len().saturating_sub(1);
        let smallest = self
            .memory
            .iter()
            .take(closed)
            .enumerate()
            .min_by_key(|(_, region)| region.size);
        if let Some((index, region)) = smallest
            && region.size < size
        {
            self.memory.remove(index);
        }
    }
}

fn check(region: Region) -> Result<(), Error> {
    if region.base.checked_add(region.size).is_none() {
        let expected = "a region that ends within the address space";
        return Err(Error::Ram { region, expected });
    }
    Ok(())
}
