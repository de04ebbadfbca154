// SPDX-License-Identifier: MIT OR Apache-2.0
//! The embedded guest, behind its header.

use core::fmt;

/// Header in front of the guest's image, padded to [`PayloadHeader::SIZE`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PayloadHeader {
    /// [`PayloadHeader::MAGIC`].
    pub magic: u64,
    /// Bytes of the image that follows.
    pub length: u64,
}

impl PayloadHeader {
    /// "RSEPAYLD", little endian.
    pub const MAGIC: u64 = 0x444c_5941_5045_5352;
    /// Bytes from the header to the image: a page.
    pub const SIZE: usize = 4096;

    /// Bytes of the image behind the header, which must be `room` at most.
    ///
    /// # Errors
    /// [`NoPayload`] says why there is none.
    pub const fn image(&self, room: u64) -> Result<u64, NoPayload> {
        match self {
            Self { magic, .. } if *magic != Self::MAGIC => Err(NoPayload::Magic),
            Self { length, .. } if *length == 0 || *length > room => {
                Err(NoPayload::Length(*length))
            }
            Self { length, .. } => Ok(*length),
        }
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
