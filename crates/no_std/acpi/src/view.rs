// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded access to the bytes of a table: reads never go beyond the table.

use platform::claims::{FRAME, PAGE};
use platform::{Claims, Region, Unfit};

use crate::Tables;
use crate::error::{Error, Table};

/// Bytes of the header with which every table except the RSDP begins (5.2.6).
pub const HEADER: usize = 36;
/// Offset of the Revision in the header.
pub const REVISION: usize = 8;
/// Offset of the OEMID in the header.
pub const OEM_ID: usize = 10;
/// Offset of the OEM Table ID in the header.
pub const OEM_TABLE_ID: usize = 16;

/// Offset of the Length in the header.
const LENGTH: usize = 4;
/// Offset of the Checksum in the header.
const CHECKSUM: usize = 9;
/// The maximum length. No table read here comes near this size, so a greater length indicates
/// damage. A checksum over such a length could read devices that follow the table in the address space.
const MAX_LENGTH: usize = 1 << 24;

/// A part of a table, or all of it.
#[derive(Clone, Copy, Debug)]
pub struct View<'t> {
    table: Table,
    /// Offset of `bytes` in the table.
    start: usize,
    bytes: &'t [u8],
}

impl<'t> View<'t> {
    /// Returns the `length` bytes at physical address `address`, without checking their contents.
    pub fn read_unchecked(
        tables: &'t impl Tables,
        table: Table,
        address: u64,
        length: usize,
    ) -> Result<Self, Error> {
        let bytes = tables
            .bytes(address, length)
            .filter(|bytes| bytes.len() == length)
            .ok_or(Error::Unreadable {
                table,
                address,
                length,
            })?;
        Ok(Self {
            table,
            start: 0,
            bytes,
        })
    }

    /// Returns the table at physical address `address` after checking its signature, length and
    /// checksum (5.2.6).
    pub fn read_table(tables: &'t impl Tables, table: Table, address: u64) -> Result<Self, Error> {
        let header = Self::read_unchecked(tables, table, address, HEADER)?;
        let signature = header.bytes_at(0)?;
        if Table::from_signature(signature) != table {
            let found = u64::from(u32::from_be_bytes(signature));
            return Err(header.defect(0, "the table's signature", found));
        }
        let length = header.u32(LENGTH)?;
        let expected = "a length of 36 bytes to 16 MiB";
        let size = usize::try_from(length)
            .ok()
            .filter(|size| (HEADER..=MAX_LENGTH).contains(size))
            .ok_or(header.defect(LENGTH, expected, length))?;
        let whole = Self::read_unchecked(tables, table, address, size)?;
        whole.check_sum(CHECKSUM, "a checksum that makes the sum of all bytes 0")?;
        Ok(whole)
    }

    /// Refuses the view if its bytes do not sum to 0 modulo 256. The error shows the sum and
    /// `offset`, the offset of the checksum.
    pub fn check_sum(&self, offset: usize, expected: &'static str) -> Result<(), Error> {
        let sum = self.bytes.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
        match sum {
            0 => Ok(()),
            _ => Err(self.defect(offset, expected, sum)),
        }
    }

    /// Refuses the table unless it has at least `size` bytes; `expected` states `size` in the error.
    pub fn check_length(&self, size: usize, expected: &'static str) -> Result<(), Error> {
        if self.len() < size {
            return Err(self.defect(LENGTH, expected, self.len() as u64));
        }
        Ok(())
    }

    /// Returns the `length` bytes from `offset` on, or `None` if the view ends earlier.
    pub fn sub_view(&self, offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        Some(Self {
            table: self.table,
            start: self.start + offset,
            bytes: self.bytes.get(offset..end)?,
        })
    }

    /// Returns the number of bytes in the view.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the error for the value `found` at `offset`, which differs from `expected`.
    pub fn defect(&self, offset: usize, expected: &'static str, found: impl Into<u64>) -> Error {
        Error::Defect {
            table: self.table,
            offset: self.start + offset,
            expected,
            found: found.into(),
        }
    }

    /// Claims `region`, whose base is the field at `offset` and must be a multiple of `align`.
    pub fn claim_at(
        &self,
        offset: usize,
        region: Region,
        align: u64,
        claims: &mut Claims<'_>,
    ) -> Result<Region, Error> {
        let expected = |unfit| match unfit {
            Unfit::Unaligned(FRAME) => "an address that is a multiple of 0x10000 and not 0",
            Unfit::Unaligned(PAGE) => "an address that is a multiple of 0x1000 and not 0",
            Unfit::Unaligned(_) => "an address aligned to the accesses",
            Unfit::TooHigh => "registers within the physical addresses",
            Unfit::InRam => "registers outside the RAM",
            Unfit::Shared => "registers that overlap no other device's",
            Unfit::TooMany => "no more devices than are counted here",
        };
        let taken = claims.claim(region, align);
        taken.map_err(|unfit| self.defect(offset, expected(unfit), region.base))
    }

    /// Returns the `N` bytes at `offset`.
    pub fn bytes_at<const N: usize>(&self, offset: usize) -> Result<[u8; N], Error> {
        self.sub_view(offset, N)
            .and_then(|part| part.bytes.try_into().ok())
            .ok_or_else(|| {
                let left = self.len().saturating_sub(offset) as u64;
                self.defect(offset, "a field where the bytes end", left)
            })
    }

    /// Returns the byte at `offset`.
    pub fn u8(&self, offset: usize) -> Result<u8, Error> {
        self.bytes_at(offset).map(u8::from_le_bytes)
    }

    /// Returns the 16-bit number at `offset`.
    pub fn u16(&self, offset: usize) -> Result<u16, Error> {
        self.bytes_at(offset).map(u16::from_le_bytes)
    }

    /// Returns the 32-bit number at `offset`.
    pub fn u32(&self, offset: usize) -> Result<u32, Error> {
        self.bytes_at(offset).map(u32::from_le_bytes)
    }

    /// Returns the 64-bit number at `offset`.
    pub fn u64(&self, offset: usize) -> Result<u64, Error> {
        self.bytes_at(offset).map(u64::from_le_bytes)
    }
}
