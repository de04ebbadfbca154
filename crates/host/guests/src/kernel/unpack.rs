// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extracts a kernel's Image from gzip and zstd files, such as the `Image.gz` and `Image.zst` that `make` writes, and
//! from zboot files. A zboot file is a UEFI application that unpacks itself. A zboot file's header has the offset of
//! the compressed Image (Linux, include/linux/pe.h, `struct linux_efi_zboot_header`; QEMU, hw/core/loader.c,
//! `unpack_efi_zboot_image`, reads the same fields).

use std::io::Read;

use platform::image::Image;

use super::{MOST, image_check};

/// Number of unpacked bytes that show whether a file is an Image. If it is not, the rest is not unpacked.
const HEAD: u64 = 4096;
/// First bytes of a zboot file, and the bytes at its offset 4.
const ZBOOT: (&[u8], &[u8]) = (b"MZ", b"zimg");
/// Offsets of the fields for the offset and the length of the compressed Image.
const AT: usize = 8;
const LENGTH: usize = 12;
/// The field that names the compression: text that ends with a zero.
const KIND: std::ops::Range<usize> = 24..56;

/// Returns the Image in `file`, or `file` itself if its format is not one of the packed formats. The error text
/// continues a sentence that begins with the file's name.
pub fn find_image(file: Vec<u8>) -> Result<Vec<u8>, String> {
    if let Some((by @ ("gzip" | "zstd"), _)) = image_check::find_compressor(&file) {
        return decompress(by, &file);
    }
    if !(file.starts_with(ZBOOT.0) && file.get(4..8) == Some(ZBOOT.1)) {
        return Ok(file);
    }
    let cut = || "is cut short: its header names data after its end".to_owned();
    let field = |at: usize| {
        let bytes = file.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let (at, length) = field(AT).zip(field(LENGTH)).ok_or_else(cut)?;
    let packed = at.checked_add(length).and_then(|end| file.get(at..end));
    let kind = file.get(KIND).ok_or_else(cut)?;
    let kind = kind.split(|&byte| byte == 0).next().unwrap_or_default();
    let packed = packed.ok_or_else(cut)?;
    decompress(&String::from_utf8_lossy(kind), packed)
}

/// Decompresses by the method `kind`.
fn decompress(kind: &str, packed: &[u8]) -> Result<Vec<u8>, String> {
    let broken = |error: &dyn std::fmt::Display| {
        format!("can't be unpacked ({kind}: {error}); give it unpacked")
    };
    let mut image = Vec::new();
    let mut reader: Box<dyn Read> = match kind {
        "gzip" => Box::new(flate2::read::GzDecoder::new(packed)),
        // The uncompressed length may follow the compressed frame.
        "zstd" | "zstd22" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed);
            Box::new(decoder.map_err(|error| broken(&error))?)
        }
        other => {
            return Err(format!(
                "is a zboot image compressed by `{other}`, which is not unpacked here; build it with CONFIG_KERNEL_GZIP, or \
                 give arch/arm64/boot/Image"
            ));
        }
    };
    let mut read = |most| -> Result<bool, String> {
        let read = reader.by_ref().take(most).read_to_end(&mut image);
        read.map_err(|error| broken(&error))?;
        Ok(Image::parse(&image).is_ok())
    };
    if read(HEAD)? {
        read(MOST as u64 + 1 - HEAD)?;
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zboot(kind: &str, packed: &[u8]) -> Vec<u8> {
        let mut file = b"MZ\0\0zimg".to_vec();
        file.extend(64u32.to_le_bytes());
        file.extend((packed.len() as u32).to_le_bytes());
        file.resize(KIND.start, 0);
        file.extend(kind.as_bytes());
        file.resize(64, 0);
        file.extend(packed);
        file.extend(b"behind");
        file
    }

    #[test]
    fn an_image_is_found_however_it_is_packed() {
        let mut image: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        image[24] = 0;
        image[8..16].fill(0);
        image[56..60].copy_from_slice(b"ARM\x64");
        assert_eq!(find_image(image.clone()).unwrap(), image);
        let packed = gzip(&image);
        assert_eq!(find_image(packed.clone()).unwrap(), image);
        assert_eq!(find_image(zboot("gzip", &packed)).unwrap(), image);
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let packed = ruzstd::encoding::compress_to_vec(&image[..], level);
        assert_eq!(find_image(zboot("zstd22", &packed)).unwrap(), image);
        assert_eq!(find_image(packed).unwrap(), image);
    }

    /// A file that is not an Image is not unpacked completely, however large its contents are.
    #[test]
    fn a_bomb_does_not_go_off() {
        let packed = gzip(&[0; 1 << 20]);
        assert_eq!(find_image(packed).unwrap().len() as u64, HEAD);
    }

    #[test]
    fn what_is_packed_badly_says_so() {
        let packed = gzip(&[1; 1000]);
        let wrong = |file: Vec<u8>| find_image(file).unwrap_err();
        assert!(wrong(packed[..20].to_vec()).contains("gzip"));
        assert!(wrong(zboot("lzma", &packed)).contains("`lzma`"));
        let mut file = zboot("gzip", &packed);
        file.truncate(70);
        assert!(wrong(file).contains("cut short"));
        assert!(wrong(zboot("gzip", b"none")).contains("can't be unpacked"));
        for length in 8..KIND.end {
            assert!(wrong(zboot("gzip", &packed)[..length].to_vec()).contains("cut short"));
        }
    }
}
