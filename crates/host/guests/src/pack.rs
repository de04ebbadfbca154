// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image that is booted: the flattened hypervisor, followed by the guest. If both of the guest's images
//! are there, the hypervisor chooses the one that the CPUs can run.
//!
//! ```text
//! 0          hypervisor, up to and including its zeroed memory
//! __payload  header (abi::PayloadHeader), a page
//!            the guest that runs on every CPU, or another kernel, an arm64 Image, padded to a page
//!            our guest with LSE atomics, padded to a page
//!            the guest's initial RAM disk, if there is one, padded to a page
//! ```
//!
//! The hypervisor and the guest are arm64 Images (Linux: Documentation/arch/arm64/booting.rst), so every loader that
//! boots Linux boots the whole file. The hypervisor also has a PE header (crates/no_std/arch/src/image.rs), which makes
//! the whole file a UEFI application.

use abi::PayloadHeader;
use anyhow::{Context, Result, bail, ensure};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment};
use wire::Source;

use crate::kernel::MOST;

const PAGE: usize = 4096;
/// The offset and the value of an Image's magic number.
const MAGIC: (usize, &[u8; 4]) = (56, b"ARM\x64");
/// Offset of the field with the image's size, which includes the memory after the file's end.
const IMAGE_SIZE: usize = 16;
const HEADER: usize = 64;
/// The offset of the field with the PE header's offset in an Image, and the signature of that header.
const PE_OFFSET: usize = 60;
const PE_MAGIC: &[u8; 4] = b"PE\0\0";
/// Offsets in the PE header of these fields: size of initialised data, size of the image in memory, and for section
/// `.data` the size in memory, the address and the size in the file.
const PE_DATA_SIZE: usize = 32;
const PE_IMAGE_SIZE: usize = 80;
const PE_SECTION_SIZE: usize = 232;
const PE_SECTION_ADDRESS: usize = 236;
const PE_SECTION_FILE_SIZE: usize = 240;
/// Parts that follow the hypervisor. At least one of the guest's images is there.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Our guest for every CPU, or another kernel.
    pub llsc: Option<&'a [u8]>,
    /// Our guest with LSE atomics.
    pub lse: Option<&'a [u8]>,
    /// The guest's initial RAM disk.
    pub initrd: Option<&'a [u8]>,
    /// The author of the guest's output, which decides which of our marks in the output count.
    pub source: Source,
}

/// Appends `parts` to the hypervisor.
pub fn pack(hypervisor: &[u8], parts: Parts) -> Result<Vec<u8>> {
    ensure!(
        is_image(hypervisor),
        "the hypervisor is not an arm64 Image; crates/no_std/arch/image.ld must put `.head` first"
    );
    ensure!(
        hypervisor.len().is_multiple_of(PAGE),
        "the hypervisor ends inside a page; crates/no_std/arch/image.ld must align __payload"
    );
    ensure!(
        parts.llsc.is_some() || parts.lse.is_some(),
        "no guest to pack after the hypervisor"
    );
    let mut packed = hypervisor.to_vec();
    packed.extend(PayloadHeader::MAGIC.to_le_bytes());
    let Parts {
        llsc,
        lse,
        initrd,
        source,
    } = parts;
    for part in [llsc, lse, initrd] {
        let length = part.map_or(0, <[u8]>::len) as u64;
        packed.extend(length.to_le_bytes());
    }
    packed.extend(source.encode().to_le_bytes());
    packed.resize(hypervisor.len() + PayloadHeader::SIZE, 0);
    for part in [llsc, lse, initrd].into_iter().flatten() {
        packed.extend(part);
        packed.resize(packed.len().next_multiple_of(PAGE), 0);
    }
    let size = packed.len() as u64;
    packed[IMAGE_SIZE..IMAGE_SIZE + 8].copy_from_slice(&size.to_le_bytes());
    finish_pe(&mut packed)?;
    Ok(packed)
}

/// Writes the sizes to the PE header, if there is one.
fn finish_pe(packed: &mut [u8]) -> Result<()> {
    let size = u32::try_from(packed.len()).context("an image of more than 4 GiB")?;
    let pe = word_at(packed, PE_OFFSET)? as usize;
    if pe == 0 {
        return Ok(());
    }
    ensure!(
        packed
            .get(pe..)
            .is_some_and(|header| header.starts_with(PE_MAGIC)),
        "no PE header at {pe:#x}, where the hypervisor's Image header says"
    );
    let section = size - word_at(packed, pe + PE_SECTION_ADDRESS)?;
    let fields = [
        (PE_DATA_SIZE, section),
        (PE_IMAGE_SIZE, size),
        (PE_SECTION_SIZE, section),
        (PE_SECTION_FILE_SIZE, section),
    ];
    for (field, value) in fields {
        packed[pe + field..][..4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

fn word_at(bytes: &[u8], at: usize) -> Result<u32> {
    let field = bytes.get(at..at + 4).context("the image is too short")?;
    Ok(u32::from_le_bytes(field.try_into()?))
}

fn is_image(image: &[u8]) -> bool {
    let (at, magic) = MAGIC;
    image.len() >= HEADER && image[at..].starts_with(magic)
}

/// Returns the memory contents of an ELF file linked at 0, zeroed parts included.
pub fn flatten(elf: &[u8]) -> Result<Vec<u8>> {
    let file: ElfFile64 = ElfFile64::parse(elf).context("not a 64-bit ELF file")?;
    let mut memory = Vec::new();
    for segment in file.segments() {
        let end = segment.address().checked_add(segment.size());
        let Some(end) = end.filter(|&end| end <= MOST as u64) else {
            bail!("a segment ends at {end:#x?}: the image is not linked at 0");
        };
        if memory.len() < end as usize {
            memory.resize(end as usize, 0);
        }
        let data = segment.data().context("a segment has no data")?;
        memory[segment.address() as usize..][..data.len()].copy_from_slice(data);
    }
    ensure!(!memory.is_empty(), "nothing in it is loaded");
    Ok(memory)
}

#[cfg(test)]
pub mod tests {
    use platform::image::Image;

    use super::*;

    fn image(len: usize) -> Vec<u8> {
        let mut image = vec![0xaa; len];
        image[8..32].fill(0);
        image[MAGIC.0..MAGIC.0 + 4].copy_from_slice(MAGIC.1);
        if len > HEADER {
            image[PE_OFFSET..HEADER].fill(0);
        }
        image
    }

    #[test]
    fn the_guest_stands_behind_a_header_page() {
        let (hypervisor, guest) = (image(2 * PAGE), image(100));
        let packed = pack(&hypervisor, only(&guest)).unwrap();
        assert_eq!(packed.len(), 4 * PAGE);
        assert_eq!(Image::parse(&packed).unwrap().size, 4 * PAGE as u64);
        assert_eq!(&packed[2 * PAGE..2 * PAGE + 8], b"RSEPAYLD");
        assert_eq!(packed[2 * PAGE + 8], 100);
        assert_eq!(&packed[3 * PAGE..3 * PAGE + 100], &guest[..]);
        assert_eq!(&packed[24..2 * PAGE], &hypervisor[24..]);
        assert_eq!(header(&packed[2 * PAGE..]).images(100).unwrap().lse, None);
    }

    fn only(guest: &[u8]) -> Parts<'_> {
        Parts {
            llsc: Some(guest),
            lse: None,
            initrd: None,
            source: Source::Foreign,
        }
    }

    /// Parses the header as the hypervisor does.
    fn header(bytes: &[u8]) -> PayloadHeader {
        let mut words = bytes.chunks(8).map(|word| word.try_into().unwrap());
        let mut next = || u64::from_le_bytes(words.next().unwrap());
        PayloadHeader {
            magic: next(),
            llsc: next(),
            lse: next(),
            initrd: next(),
            source: next(),
        }
    }

    #[test]
    fn both_images_are_found_where_they_were_put() {
        let (hypervisor, guest) = (image(PAGE), image(PAGE + 100));
        let mut other = image(300);
        other[200] = 1;
        let parts = Parts {
            llsc: Some(&guest),
            lse: Some(&other),
            initrd: Some(&[7; 10]),
            source: Source::Program,
        };
        let packed = pack(&hypervisor, parts).unwrap();
        let behind = &packed[PAGE + PayloadHeader::SIZE..];
        let header = header(&packed[PAGE..]);
        assert_eq!(Source::decode(header.source), Source::Program);
        let images = header.images(behind.len() as u64).unwrap();
        let at = |extent: abi::Extent| &behind[extent.offset as usize..][..extent.length as usize];
        assert_eq!(at(images.llsc.unwrap()), &guest[..]);
        assert_eq!(at(images.lse.unwrap()), &other[..]);
        assert_eq!(at(images.initrd.unwrap()), [7; 10]);
        assert_eq!(behind.len(), 4 * PAGE);
        assert_eq!(Image::parse(&packed).unwrap().size, packed.len() as u64);
    }

    #[test]
    fn a_guest_with_lse_may_be_the_only_one() {
        let parts = Parts {
            llsc: None,
            lse: Some(&image(PAGE + 1)),
            initrd: Some(&[7; 10]),
            source: Source::Ours,
        };
        let packed = pack(&image(PAGE), parts).unwrap();
        let images = header(&packed[PAGE..]).images(4 * PAGE as u64).unwrap();
        let at = |part: Option<abi::Extent>| part.map(|part| (part.offset, part.length));
        assert_eq!((images.llsc, at(images.lse)), (None, Some((0, 4097))));
        assert_eq!(at(images.initrd), Some((8192, 10)));
        assert_eq!(&packed[4 * PAGE..4 * PAGE + 10], &[7; 10]);
    }

    #[test]
    fn the_pe_header_covers_the_guest() {
        let mut hypervisor = image(2 * PAGE);
        let pe = 64;
        hypervisor[PE_OFFSET] = pe as u8;
        assert!(pack(&hypervisor, only(&image(100))).is_err());
        hypervisor[pe..pe + 4].copy_from_slice(PE_MAGIC);
        hypervisor[pe + PE_SECTION_ADDRESS..][..4].copy_from_slice(&0x1000u32.to_le_bytes());
        let packed = pack(&hypervisor, only(&image(100))).unwrap();
        let field = |at| word_at(&packed, pe + at).unwrap() as usize;
        assert_eq!(field(PE_IMAGE_SIZE), packed.len());
        for size in [PE_DATA_SIZE, PE_SECTION_SIZE, PE_SECTION_FILE_SIZE] {
            assert_eq!(field(size), packed.len() - 0x1000);
        }
    }

    #[test]
    fn what_does_not_begin_or_end_well_is_not_packed() {
        assert!(pack(&[0; PAGE], only(&image(64))).is_err());
        assert!(pack(&image(PAGE + 1), only(&image(64))).is_err());
        let none = Parts {
            llsc: None,
            ..only(&[])
        };
        assert!(pack(&image(PAGE), none).is_err());
    }

    /// Returns an ELF file with one segment: `data` at `address`, `size` bytes in memory.
    pub fn elf(address: u64, data: &[u8], size: u64) -> Vec<u8> {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend([3, 0, 183, 0, 1, 0, 0, 0]);
        for word in [0u64, 64, 0] {
            elf.extend(word.to_le_bytes());
        }
        elf.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
        elf.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        for word in [120, address, address, data.len() as u64, size, 4096] {
            elf.extend(word.to_le_bytes());
        }
        elf.extend(data);
        elf
    }

    #[test]
    fn flattening_places_and_zeroes() {
        assert_eq!(flatten(&elf(2, &[7, 8], 4)).unwrap(), [0, 0, 7, 8, 0, 0]);
        assert!(flatten(&elf(1 << 40, &[7], 1)).is_err());
        assert!(flatten(&elf(u64::MAX, &[7], 1)).is_err());
        assert!(flatten(b"no ELF").is_err());
    }
}
