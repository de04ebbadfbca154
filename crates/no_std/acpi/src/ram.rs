// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the loader's description of the RAM, region by region.

use platform::{Platform, Region, Reserved};

use crate::error::Error;

/// Usable RAM, and the parts of it that are already in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ram {
    pub(crate) memory: platform::Ram,
    pub(crate) reserved: Reserved,
}

impl Ram {
    /// Starts without RAM.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds RAM. A region directly after the previously added one becomes part of it. If there are
    /// more regions than fit, the largest are kept.
    ///
    /// # Errors
    /// Returns [`Error::Ram`] if the region does not end within the address space.
    pub fn usable(&mut self, region: Region) -> Result<(), Error> {
        check_end(region)?;
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
        // If no smaller region was dropped, the new region is the smallest and is left out.
        let _ = self.memory.try_push(region);
        Ok(())
    }

    /// Adds a part that is in use and must stay untouched.
    ///
    /// # Errors
    /// Returns [`Error::Ram`] if the region does not end within the address space.
    pub fn reserve(&mut self, region: Region) -> Result<(), Error> {
        check_end(region)?;
        self.reserved.keep(region);
        Ok(())
    }

    /// Replaces the RAM in the description `platform` by this RAM; keeps the reserved regions of
    /// `platform`.
    pub fn describe(self, platform: &mut Platform<'_>) {
        platform.memory = self.memory;
    }

    /// Returns the usable RAM, which must not be empty.
    ///
    /// # Errors
    /// Returns [`Error::Ram`] if there is no usable RAM.
    pub fn memory(&self) -> Result<&platform::Ram, Error> {
        if self.memory.is_empty() {
            let region = Region { base: 0, size: 0 };
            let expected = "some usable RAM";
            return Err(Error::Ram { region, expected });
        }
        Ok(&self.memory)
    }

    /// Drops the smallest region if it is smaller than `size`.
    fn drop_smallest(&mut self, size: u64) {
        let sizes = self.memory.iter().map(|region| region.size);
        let smallest = sizes.enumerate().min_by_key(|(_, size)| *size);
        if let Some((index, smallest)) = smallest
            && smallest < size
        {
            self.memory.remove(index);
        }
    }
}

fn check_end(region: Region) -> Result<(), Error> {
    if region.base.checked_add(region.size).is_none() {
        let expected = "a region that ends within the address space";
        return Err(Error::Ram { region, expected });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(base: u64, size: u64) -> Region {
        Region { base, size }
    }

    #[test]
    fn neighbours_become_one() {
        let mut ram = Ram::new();
        for part in [(0x1000, 0x1000), (0x2000, 0), (0x2000, 0x3000), (0x6000, 1)] {
            ram.usable(region(part.0, part.1)).unwrap();
        }
        let expected = [region(0x1000, 0x4000), region(0x6000, 1)];
        assert_eq!(ram.memory().unwrap().as_slice(), expected);
    }

    #[test]
    fn of_many_the_largest_stay() {
        let mut ram = Ram::new();
        for index in 0..40 {
            // Sizes 1 to 40 in a mixed order.
            ram.usable(region(index << 20, 1 + index * 7 % 40)).unwrap();
        }
        let mut sizes: Vec<u64> = ram.memory.iter().map(|region| region.size).collect();
        assert!(ram.memory.is_sorted_by_key(|region| region.base));
        sizes.sort_unstable();
        assert_eq!(sizes, (25..=40).collect::<Vec<_>>());
    }

    #[test]
    fn the_address_space_has_an_end() {
        let mut ram = Ram::new();
        assert!(ram.usable(region(u64::MAX, 2)).is_err());
        assert!(ram.reserve(region(u64::MAX, 2)).is_err());
        assert!(ram.memory().is_err());
    }
}
