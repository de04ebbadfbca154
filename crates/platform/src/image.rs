// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of an arm64 Image: where a kernel has to be put, and how much memory
//! from there is its own (Linux, Documentation/arch/arm64/booting.rst, "Call the
//! kernel image").

use core::fmt;

/// Bytes of the header.
pub const HEADER: usize = 64;
/// An Image stands its `text_offset` behind a multiple of this.
pub const ALIGN: u64 = 2 << 20;
/// Where the header has its fields.
const TEXT_OFFSET: usize = 8;
const IMAGE_SIZE: usize = 16;
const FLAGS: usize = 24;
const MAGIC: usize = 56;
/// The offset of kernels from before the header had a size; whatever the header
/// says, in whichever byte order.
const OLD_OFFSET: u64 = 0x8_0000;
/// Flag: the kernel is big-endian.
const BIG_ENDIAN: u64 = 1;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Bytes between a multiple of [`ALIGN`] and the image.
    pub text_offset: u64,
    /// Bytes from the start of the image that are the kernel's, its zeroed memory
    /// included; 0 where an old header does not say.
    pub size: u64,
    /// The size of its pages, where it says.
    pub granule: Option<Granule>,
}

/// The size of a kernel's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granule {
    /// 4 KiB.
    Kib4,
    /// 16 KiB.
    Kib16,
    /// 64 KiB.
    Kib64,
}

impl Granule {
    /// Its size.
    #[must_use]
    pub const fn kib(self) -> u32 {
        match self {
            Self::Kib4 => 4,
            Self::Kib16 => 16,
            Self::Kib64 => 64,
        }
    }

    /// Whether a PE has it for its stage 1, by ID_AA64MMFR0_EL1: TGran16 reads 0
    /// where there is none, the other two 15 (DDI 0487K.a, D23.2.79).
    #[must_use]
    pub const fn is_in(self, mmfr0: u64) -> bool {
        match self {
            Self::Kib4 => mmfr0 >> 28 & 15 != 15,
            Self::Kib16 => mmfr0 >> 20 & 15 != 0,
            Self::Kib64 => mmfr0 >> 24 & 15 != 15,
        }
    }
}

/// Why an image can't be a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It has no such header.
    NoImage,
    /// It is big-endian.
    BigEndian,
    /// Its first instruction would not be where instructions can be.
    Offset(u64),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoImage => {
                f.write_str("is not an arm64 Image (no `ARM\\x64` at byte 56); name one that is")
            }
            Self::BigEndian => f.write_str(
                "is big-endian, and the devices that Rouse emulates are not; build it little-endian",
            ),
            Self::Offset(offset) => write!(
                f,
                "has text_offset {offset:#x}, which is no multiple of 4; correct its header"
            ),
        }
    }
}

impl Image {
    /// Reads the header that `image` begins with.
    ///
    /// # Errors
    /// [`Error`] says why it can't be a guest.
    pub fn parse(image: &[u8]) -> Result<Self, Error> {
        let header = image.first_chunk::<HEADER>().ok_or(Error::NoImage)?;
        if !header[MAGIC..].starts_with(b"ARM\x64") {
            return Err(Error::NoImage);
        }
        let flags = doubleword(header, FLAGS);
        let size = doubleword(header, IMAGE_SIZE);
        if flags & BIG_ENDIAN != 0 {
            return Err(Error::BigEndian);
        }
        let text_offset = match size {
            0 => OLD_OFFSET,
            _ => doubleword(header, TEXT_OFFSET),
        };
        if !text_offset.is_multiple_of(4) {
            return Err(Error::Offset(text_offset));
        }
        Ok(Self {
            text_offset,
            size,
            granule: match flags >> 1 & 3 {
                1 => Some(Granule::Kib4),
                2 => Some(Granule::Kib16),
                3 => Some(Granule::Kib64),
                _ => None,
            },
        })
    }

    /// Bytes that have to be there from the multiple of [`ALIGN`] on which the image,
    /// a file of `length` bytes, is placed.
    #[must_use]
    pub fn span(&self, length: u64) -> u64 {
        self.text_offset.saturating_add(self.size.max(length))
    }
}

/// The field at `at`, which lies in the header.
fn doubleword(header: &[u8; HEADER], at: usize) -> u64 {
    let bytes = header[at..].first_chunk().copied();
    u64::from_le_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(text_offset: u64, size: u64, flags: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        for (at, value) in [
            (TEXT_OFFSET, text_offset),
            (IMAGE_SIZE, size),
            (FLAGS, flags),
        ] {
            header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        header[MAGIC..MAGIC + 4].copy_from_slice(b"ARM\x64");
        header
    }

    #[test]
    fn a_header_says_where_and_how_much() {
        let image = Image::parse(&header(0x1000, 60 << 20, 0xa)).unwrap();
        assert_eq!((image.text_offset, image.size), (0x1000, 60 << 20));
        assert_eq!(image.granule, Some(Granule::Kib4));
        assert_eq!(image.span(1 << 20), 0x1000 + (60 << 20));
        assert_eq!(image.span(70 << 20), 0x1000 + (70 << 20));
        let sixteen = Image::parse(&header(0, 1, 4)).unwrap();
        assert_eq!(sixteen.granule, Some(Granule::Kib16));
    }

    #[test]
    fn an_old_header_has_the_offset_of_its_time() {
        // In big-endian order, as some of them have it.
        let image = Image::parse(&header(0x0800_0000_0000, 0, 0)).unwrap();
        assert_eq!((image.text_offset, image.size), (0x8_0000, 0));
        assert_eq!(image.granule, None);
        assert_eq!(image.span(100), 0x8_0000 + 100);
    }

    #[test]
    fn what_can_be_no_guest_is_named() {
        assert_eq!(Image::parse(&[0; 64]), Err(Error::NoImage));
        assert_eq!(Image::parse(&header(0, 1, 0)[..63]), Err(Error::NoImage));
        assert_eq!(Image::parse(&header(0, 1, 1)), Err(Error::BigEndian));
        assert_eq!(Image::parse(&header(2, 1, 0)), Err(Error::Offset(2)));
    }

    #[test]
    fn granules_are_those_of_the_id_register() {
        // Cortex-A53: 4 and 64 KiB. Apple's cores: 4 and 16 KiB.
        for (mmfr0, has) in [
            (0x1122, [true, false, true]),
            (0x0f10_0000, [true, true, false]),
        ] {
            let all = [Granule::Kib4, Granule::Kib16, Granule::Kib64];
            assert_eq!(all.map(|granule| granule.is_in(mmfr0)), has, "{mmfr0:#x}");
        }
        assert!(!Granule::Kib4.is_in(0xf000_0000));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_nothing_panics(bytes: Vec<u8>, length: u64) {
            if let Ok(image) = Image::parse(&bytes) {
                prop_assert!(image.span(length) >= length);
            }
        }
    }
}
