// SPDX-License-Identifier: MIT OR Apache-2.0
//! The embedded guest, in one or two images, behind a header.

use core::fmt;

/// Header in front of the guest's images, padded to [`PayloadHeader::SIZE`]. Behind it
/// is the guest with load and store exclusive, padded to pages, and if there is one the
/// same guest with LSE atomics.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PayloadHeader {
    /// [`PayloadHeader::MAGIC`].
    pub magic: u64,
    /// Bytes of the image that follows.
    pub length: u64,
    /// Bytes of the image with LSE atomics behind it; 0 if there is none.
    pub lse: u64,
}

/// Where an image lies: bytes behind the header, and how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Of its first byte, counted from the end of the header.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

/// The images behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// The one that runs on every CPU.
    pub llsc: Extent,
    /// The one with LSE atomics.
    pub lse: Option<Extent>,
}

impl Images {
    /// Bytes of all of them.
    #[must_use]
    pub const fn length(&self) -> u64 {
        let last = match self.lse {
            Some(lse) => lse,
            None => self.llsc,
        };
        last.offset + last.length
    }
}

impl PayloadHeader {
    /// "RSEPAYLD", little endian.
    pub const MAGIC: u64 = 0x444c_5941_5045_5352;
    /// Bytes from the header to the image: a page.
    pub const SIZE: usize = 4096;
    /// Where the second image begins: on a multiple of this.
    pub const ALIGN: u64 = 4096;

    /// The images behind the header, which must be `room` bytes at most.
    ///
    /// # Errors
    /// [`NoPayload`] says why there is none.
    pub fn images(&self, room: u64) -> Result<Images, NoPayload> {
        let Self { magic, length, lse } = *self;
        if magic != Self::MAGIC {
            return Err(NoPayload::Magic);
        }
        if length == 0 || length > room {
            return Err(NoPayload::Length(length));
        }
        let llsc = Extent { offset: 0, length };
        if lse == 0 {
            return Ok(Images { llsc, lse: None });
        }
        let second = length.checked_next_multiple_of(Self::ALIGN);
        let fits = second.filter(|offset| offset.checked_add(lse).is_some_and(|end| end <= room));
        let offset = fits.ok_or(NoPayload::Length(lse))?;
        let lse = Some(Extent {
            offset,
            length: lse,
        });
        Ok(Images { llsc, lse })
    }
}

/// Why there is no image behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// It is no header: nothing was packed.
    Magic,
    /// Its length is this, which is nothing, or more than there is room for.
    Length(u64),
}

impl fmt::Display for NoPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("no guest in this image"),
            Self::Length(length) => write!(f, "a guest of {length:#x} bytes, which is no length"),
        }
    }
}
