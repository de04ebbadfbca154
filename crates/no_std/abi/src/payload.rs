// SPDX-License-Identifier: MIT OR Apache-2.0
//! The embedded guest, in one or two images, and its initial RAM disk, after a header.

use core::fmt;

/// Header in front of the guest's images, padded to [`PayloadHeader::SIZE`]. The guest with
/// load-exclusive and store-exclusive follows it, padded to pages, and then, if they exist, the
/// same guest with LSE atomics and the guest's initial RAM disk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PayloadHeader {
    /// [`PayloadHeader::MAGIC`].
    pub magic: u64,
    /// Bytes of the image that follows.
    pub length: u64,
    /// Bytes of the image with LSE atomics after it; 0 without one.
    pub lse: u64,
    /// Bytes of the initial RAM disk after that; 0 without one.
    pub initrd: u64,
    /// The source of the guest: `wire::Source` as a number.
    pub source: u64,
}

/// Place of a part: its offset after the header, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of its first byte from the end of the header.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// Images after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// The image that runs on every CPU.
    pub llsc: Extent,
    /// The image with LSE atomics.
    pub lse: Option<Extent>,
    /// The initial RAM disk.
    pub initrd: Option<Extent>,
}

impl Images {
    /// Bytes of all parts.
    #[must_use]
    pub const fn length(&self) -> u64 {
        let last = match (self.initrd, self.lse) {
            (Some(last), _) | (None, Some(last)) => last,
            (None, None) => self.llsc,
        };
        last.offset + last.length
    }
}

impl PayloadHeader {
    /// "RSEPAYLD", little endian.
    pub const MAGIC: u64 = 0x444c_5941_5045_5352;
    /// Bytes from the header to the image: a page.
    pub const SIZE: usize = 4096;
    /// Each part begins at a multiple of this.
    pub const ALIGN: u64 = 4096;

    /// Returns the images after the header, which must be `room` bytes at most.
    ///
    /// # Errors
    /// [`NoPayload`] says why the images are missing.
    pub fn images(&self, room: u64) -> Result<Images, NoPayload> {
        if self.magic != Self::MAGIC {
            return Err(NoPayload::Magic);
        }
        if self.length == 0 || self.length > room {
            return Err(NoPayload::Length(self.length));
        }
        let llsc = Extent {
            offset: 0,
            length: self.length,
        };
        let lse = llsc.next(self.lse, room)?;
        let initrd = lse.unwrap_or(llsc).next(self.initrd, room)?;
        Ok(Images { llsc, lse, initrd })
    }
}

impl Extent {
    /// Returns the next extent, of `length` bytes, or `None` if that is 0.
    fn next(self, length: u64, room: u64) -> Result<Option<Self>, NoPayload> {
        if length == 0 {
            return Ok(None);
        }
        let end = self.offset.checked_add(self.length);
        let offset = end.and_then(|end| end.checked_next_multiple_of(PayloadHeader::ALIGN));
        let fits =
            offset.filter(|offset| offset.checked_add(length).is_some_and(|end| end <= room));
        let offset = fits.ok_or(NoPayload::Length(length))?;
        Ok(Some(Self { offset, length }))
    }
}

/// Why there is no image after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// Not a header: nothing was packed.
    Magic,
    /// Its length is this, which is 0 or exceeds the available room.
    Length(u64),
}

impl fmt::Display for NoPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("no guest in this image"),
            Self::Length(length) => write!(f, "a guest of {length:#x} bytes, not a valid length"),
        }
    }
}
