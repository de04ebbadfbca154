// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of an arm64 Image: where a kernel has to be loaded, and how much memory from there
//! belongs to it (Linux, Documentation/arch/arm64/booting.rst, "Call the kernel image").

use core::fmt;

/// Bytes of the header.
pub const HEADER: usize = 64;
/// An Image is loaded `text_offset` bytes after a multiple of this.
pub const ALIGN: u64 = 2 << 20;
/// Offsets of the header's fields.
const TEXT_OFFSET: usize = 8;
const IMAGE_SIZE: usize = 16;
const FLAGS: usize = 24;
const MAGIC: usize = 56;
/// The offset of kernels older than the header's size field. This offset applies whatever the
/// header contains, in either byte order.
const OLD_OFFSET: u64 = 0x8_0000;
/// Flag: the kernel is big-endian.
const BIG_ENDIAN: u64 = 1;
/// Flag: the multiple of [`ALIGN`] may be anywhere. Otherwise it has to be as near to the start of
/// RAM as possible, since the kernel may be unable to use RAM below it.
const ANYWHERE: u64 = 1 << 3;
/// Bytes at the start of RAM in which QEMU puts a machine's first instructions (hw/arm/boot.c,
/// `BOOTLOADER_MAX_SIZE`). QEMU moves an image that would overlap them up by [`ALIGN`]. So does
/// this crate, because images may be linked for either address.
const LOADER: u64 = 0x1000;
/// Bytes of the smallest page that a kernel may have.
const PAGE: u64 = 0x1000;

/// Contents of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Bytes between a multiple of [`ALIGN`] and the image.
    pub text_offset: u64,
    /// Bytes from the start of the image that belong to the kernel, including its zeroed memory; 0
    /// if an old header has no size.
    pub size: u64,
    /// The size of the kernel's pages, if the header gives it.
    pub granule: Option<Granule>,
    /// Whether the image may be anywhere in RAM, rather than only as near to the start of RAM as possible.
    pub anywhere: bool,
}

/// The positions of an image and its device tree, in bytes from the start of RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The image.
    pub image: u64,
    /// The device tree: before the image or, if it does not fit there, after it.
    pub tree: u64,
    /// The end of the image and the tree, including all memory that belongs to the image.
    pub end: u64,
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
    /// Returns the granule's size in KiB.
    #[must_use]
    pub const fn kib(self) -> u32 {
        match self {
            Self::Kib4 => 4,
            Self::Kib16 => 16,
            Self::Kib64 => 64,
        }
    }

    /// Whether a PE with this ID_AA64MMFR0_EL1 has the granule at stage 1: without the granule,
    /// TGran16 reads 0, and the other two fields read 15 (DDI 0487K.a, D23.2.79).
    #[must_use]
    pub const fn is_in(self, mmfr0: u64) -> bool {
        match self {
            Self::Kib4 => mmfr0 >> 28 & 15 != 15,
            Self::Kib16 => mmfr0 >> 20 & 15 != 0,
            Self::Kib64 => mmfr0 >> 24 & 15 != 15,
        }
    }
}

/// The reason why an image can't be a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The image has no header of an arm64 Image.
    NoImage,
    /// The image is big-endian.
    BigEndian,
    /// The image's first instruction would be at an impossible address.
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
                "has text_offset {offset:#x}, which is not a multiple of 4; correct its header"
            ),
        }
    }
}

impl Image {
    /// Reads the header that `image` begins with.
    ///
    /// # Errors
    /// Returns [`Error`], the reason why the image can't be a guest.
    pub fn parse(image: &[u8]) -> Result<Self, Error> {
        let header = image.first_chunk::<HEADER>().ok_or(Error::NoImage)?;
        if !header[MAGIC..].starts_with(b"ARM\x64") {
            return Err(Error::NoImage);
        }
        let flags = read_doubleword(header, FLAGS);
        let size = read_doubleword(header, IMAGE_SIZE);
        if flags & BIG_ENDIAN != 0 {
            return Err(Error::BigEndian);
        }
        let text_offset = match size {
            0 => OLD_OFFSET,
            _ => read_doubleword(header, TEXT_OFFSET),
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
            anywhere: flags & ANYWHERE != 0,
        })
    }

    /// Places the image, a file of `length` bytes, and a device tree of at most `tree` bytes, which
    /// must not exceed [`ALIGN`].
    #[must_use]
    pub fn placed(&self, length: u64, tree: u64) -> Placed {
        let base = match self.anywhere || self.text_offset < LOADER {
            true => ALIGN,
            false => 0,
        };
        let image = self.text_offset.saturating_add(base);
        let end = image.saturating_add(self.size.max(length));
        if tree <= image {
            return Placed {
                image,
                tree: 0,
                end,
            };
        }
        // No real image has so small an offset and ends so near to 2^64.
        let behind = end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        Placed {
            image,
            tree: behind,
            end: behind.saturating_add(tree),
        }
    }

    /// Returns the bytes of RAM that the image, a file of `length` bytes, needs, counted from its
    /// multiple of [`ALIGN`].
    #[must_use]
    pub fn span(&self, length: u64) -> u64 {
        self.text_offset.saturating_add(self.size.max(length))
    }
}

/// Reads the field at `at`, which lies in the header.
fn read_doubleword(header: &[u8; HEADER], at: usize) -> u64 {
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
        // The offset is in big-endian order, as in some old headers.
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

    #[test]
    fn an_image_is_where_its_header_lets_it_be() {
        const TREE: u64 = 0x2_0000;
        let placed = |offset, flags| {
            Image::parse(&header(offset, 0x3000, flags))
                .unwrap()
                .placed(100, TREE)
        };
        let at = |image, tree, end| Placed { image, tree, end };
        // The image may be anywhere, so it comes after the tree, at its offset from 2 MiB.
        assert_eq!(placed(0x8_0000, 0xa), at(0x28_0000, 0, 0x28_3000));
        // The image may not be moved: it is at the start of RAM, with the tree before or after it.
        assert_eq!(placed(0x8_0000, 2), at(0x8_0000, 0, 0x8_3000));
        assert_eq!(placed(TREE, 0), at(TREE, 0, TREE + 0x3000));
        assert_eq!(placed(TREE - 4, 0), at(TREE - 4, 0x2_3000, 0x4_3000));
        assert_eq!(placed(LOADER, 0), at(LOADER, 0x4000, 0x2_4000));
        // QEMU, too, has no room for these at the start of RAM.
        assert_eq!(placed(LOADER - 4, 0), at(0x20_0ffc, 0, 0x20_3ffc));
        assert_eq!(placed(0, 2), at(0x20_0000, 0, 0x20_3000));
        // The header of an old kernel does not allow the image to move.
        let old = Image::parse(&header(0, 0, 0)).unwrap().placed(100, TREE);
        assert_eq!(old, at(0x8_0000, 0, 0x8_0064));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_nothing_panics(bytes: Vec<u8>, length: u64) {
            if let Ok(image) = Image::parse(&bytes) {
                prop_assert!(image.span(length) >= length);
                let placed = image.placed(length, ALIGN);
                prop_assert!(placed.end >= image.span(length) || placed.end == u64::MAX);
                prop_assert!(placed.tree + ALIGN <= placed.image || placed.tree >= placed.image);
            }
        }
    }
}
