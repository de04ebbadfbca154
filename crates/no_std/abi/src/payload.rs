// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a payload: a header, the embedded guest as one or two images, and its initial RAM disk.

use core::fmt;

/// Header in front of the guest's images, padded to [`PayloadHeader::SIZE`]. After it comes the
/// guest that uses load-exclusive and store-exclusive, the same guest with LSE atomics, and the guest's
/// initial RAM disk, each padded to pages. One of the two images can be missing, and so can the RAM disk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PayloadHeader {
    /// [`PayloadHeader::MAGIC`].
    pub magic: u64,
    /// Bytes of the image that runs on every CPU; 0 if there is none.
    pub llsc: u64,
    /// Bytes of the image with LSE atomics; 0 if there is none.
    pub lse: u64,
    /// Bytes of the initial RAM disk, which comes last; 0 if there is none.
    pub initrd: u64,
    /// The source of the guest: `wire::Source` as a number.
    pub source: u64,
}

/// A part of the payload: its offset from the end of the header, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the part's first byte from the end of the header.
    pub offset: u64,
    /// Length of the part in bytes.
    pub length: u64,
}

/// The images that follow a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// The image that runs on every CPU. There is this one or the next, or both.
    pub llsc: Option<Extent>,
    /// The image with LSE atomics.
    pub lse: Option<Extent>,
    /// The initial RAM disk.
    pub initrd: Option<Extent>,
}

impl Images {
    /// Returns the number of bytes of all parts, including padding between them.
    #[must_use]
    pub fn length(&self) -> u64 {
        Extent::end_of([self.llsc, self.lse, self.initrd])
    }
}

impl PayloadHeader {
    /// "RSEPAYLD", little endian.
    pub const MAGIC: u64 = 0x444c_5941_5045_5352;
    /// Bytes from the start of the header to the image: a page.
    pub const SIZE: usize = 4096;
    /// Each part begins at a multiple of this number of bytes.
    pub const ALIGN: u64 = 4096;

    /// Returns the images after the header, which must fit in `room` bytes.
    ///
    /// # Errors
    /// Returns [`NoPayload`], which says why the images are missing.
    pub fn images(&self, room: u64) -> Result<Images, NoPayload> {
        if self.magic != Self::MAGIC {
            return Err(NoPayload::Magic);
        }
        if self.llsc == 0 && self.lse == 0 {
            return Err(NoPayload::Length(0));
        }
        let llsc = Extent::after(0, self.llsc, room)?;
        let lse = Extent::after(Extent::end_of([llsc]), self.lse, room)?;
        let initrd = Extent::after(Extent::end_of([llsc, lse]), self.initrd, room)?;
        Ok(Images { llsc, lse, initrd })
    }
}

impl Extent {
    /// Returns the extent of `length` bytes that follows the bytes up to `end`, or `None` if `length` is 0.
    fn after(end: u64, length: u64, room: u64) -> Result<Option<Self>, NoPayload> {
        if length == 0 {
            return Ok(None);
        }
        let offset = end.checked_next_multiple_of(PayloadHeader::ALIGN);
        let fits =
            offset.filter(|offset| offset.checked_add(length).is_some_and(|end| end <= room));
        let offset = fits.ok_or(NoPayload::Length(length))?;
        Ok(Some(Self { offset, length }))
    }

    /// Returns the offset at which the last of `parts`, which are in order, ends; 0 without parts.
    fn end_of<const N: usize>(parts: [Option<Self>; N]) -> u64 {
        let last = parts.into_iter().flatten().next_back();
        last.map_or(0, |part| part.offset + part.length)
    }
}

/// The reason why there is no image after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// There is no header, because nothing was packed.
    Magic,
    /// A part's length is this value, which is 0 or exceeds the available space.
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
