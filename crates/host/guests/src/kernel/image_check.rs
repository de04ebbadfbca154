// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a file is an arm64 Image.

use platform::image::Image;

/// First bytes of compressed files, with the compressor and the command that decompresses them.
const COMPRESSED: [(&[u8], &str, &str); 8] = [
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\x5d\0\0", "lzma", "xz -dc"),
    (b"\x02\x21\x4c\x18", "lz4", "lz4 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"\x89LZO", "lzo", "lzop -dc"),
];

/// Files that are or contain kernels, but are not Images: an offset, the bytes at this offset, and the end of a
/// sentence that begins with the file's name.
const OTHERS: [(usize, &[u8], &str); 8] = [
    (
        0x202,
        b"HdrS",
        "is a kernel of x86 (bzImage); name an arm64 Image",
    ),
    (56, b"RSC\x05", "is an Image of RISC-V; name an arm64 Image"),
    (
        36,
        b"\x18\x28\x6f\x01",
        "is a zImage of 32-bit Arm; name an arm64 Image",
    ),
    (
        0,
        b"\x27\x05\x19\x56",
        "is a uImage of U-Boot; take the Image out of it: dumpimage -o IMAGE FILE",
    ),
    (
        0,
        b"\xd0\x0d\xfe\xed",
        "is a device tree or a FIT image of U-Boot; take the Image out of it: dumpimage -T flat_dt -p 0 -o IMAGE FILE",
    ),
    (
        0,
        b"ANDROID!",
        "is a boot image of Android; take the Image out of it: unpack_bootimg",
    ),
    (4, b"zimg", "is a zboot image; name the Image that is in it"),
    (
        0,
        b"PK\x03\x04",
        "is an archive; take the Image out of it: unzip",
    ),
];

/// Returns the compressor of a file, and the command that unpacks it.
pub fn find_compressor(file: &[u8]) -> Option<(&'static str, &'static str)> {
    let found = COMPRESSED
        .iter()
        .find(|(begin, ..)| file.starts_with(begin));
    found.map(|&(_, by, tool)| (by, tool))
}

/// Refuses anything but an arm64 Image. The error text names the kind of file, and continues a sentence that begins
/// with the file's name.
pub fn check_image(file: &[u8]) -> Result<(), String> {
    let Err(why) = Image::parse(file) else {
        return Ok(());
    };
    // Some files have our magic number, but a wrong header.
    if file.get(56..60) == Some(b"ARM\x64") {
        return Err(why.to_string());
    }
    let other = OTHERS.iter().find(|(at, magic, _)| {
        let there = file.get(*at..);
        there.is_some_and(|there| there.starts_with(magic))
    });
    Err(match (find_compressor(file), other) {
        _ if file.is_empty() => "is empty; name an arm64 Image".into(),
        (Some((by, tool)), _) => {
            format!("is compressed by {by}; unpack it: {tool} FILE > IMAGE")
        }
        (None, Some((.., what))) => (*what).into(),
        (None, None) if file.starts_with(b"\x7fELF") => elf_remedy(file),
        (None, None) => match pe_machine(file) {
            Some(0xaa64) => {
                "is a UEFI application without the header of an arm64 Image; name one that has it"
                    .into()
            }
            Some(machine) => {
                format!(
                    "is a UEFI application for another processor (machine {machine:#x}); name an arm64 Image"
                )
            }
            None => why.to_string(),
        },
    })
}

/// Returns the remedy for an ELF file. An ELF file has its machine at byte 18, and its byte order at byte 5.
fn elf_remedy(file: &[u8]) -> String {
    let machine = file.get(18..20).map(|two| match file[5] {
        2 => u16::from_be_bytes([two[0], two[1]]),
        _ => u16::from_le_bytes([two[0], two[1]]),
    });
    let of = match machine {
        None | Some(183) => {
            return "is an ELF file; flatten it: objcopy -O binary FILE IMAGE, or name arch/arm64/boot/Image".into();
        }
        Some(3 | 62) => "x86".into(),
        Some(40) => "32-bit Arm".into(),
        Some(243) => "RISC-V".into(),
        Some(other) => format!("another processor (machine {other})"),
    };
    format!("is an ELF file for {of}; name an arm64 Image")
}

/// Returns the machine of a PE file, whose header is at the offset in byte 0x3c.
fn pe_machine(file: &[u8]) -> Option<u16> {
    let at = file.strip_prefix(b"MZ").and(file.get(0x3c..0x40))?;
    let at = usize::try_from(u32::from_le_bytes(at.try_into().ok()?)).ok()?;
    let header = file.get(at..)?.strip_prefix(b"PE\0\0")?;
    Some(u16::from_le_bytes(*header.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file that consists of `parts`, each an offset and the bytes at it.
    fn file(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut file = vec![0; 0x300];
        for (at, part) in parts {
            file[*at..at + part.len()].copy_from_slice(part);
        }
        file
    }

    #[test]
    fn what_is_no_image_is_named_by_what_it_is() {
        let pe = |machine: &'static [u8]| {
            file(&[
                (0, b"MZ"),
                (0x3c, &[0x80]),
                (0x80, b"PE\0\0"),
                (0x84, machine),
            ])
        };
        let elf =
            |order: u8, machine: &[u8]| file(&[(0, b"\x7fELF\x02"), (5, &[order]), (18, machine)]);
        for (file, told) in [
            (vec![], "is empty"),
            (b"\x7fELF".to_vec(), "objcopy -O binary"),
            (elf(1, &[183, 0]), "objcopy -O binary"),
            (elf(2, &[0, 183]), "objcopy -O binary"),
            (elf(1, &[62, 0]), "ELF file for x86;"),
            (elf(1, &[243, 0]), "ELF file for RISC-V;"),
            (elf(1, &[2, 1]), "(machine 258)"),
            (pe(&[0x64, 0xaa]), "UEFI application without the header"),
            (pe(&[0x64, 0x86]), "another processor (machine 0x8664)"),
            (file(&[(0, b"MZ"), (0x202, b"HdrS")]), "kernel of x86"),
            (file(&[(56, b"RSC\x05")]), "RISC-V"),
            (file(&[(0, b"\xd0\x0d\xfe\xed")]), "FIT image"),
            (
                file(&[(0, b"\xfd7zXZ\0")]),
                "compressed by xz; unpack it: xz -dc FILE",
            ),
            (
                file(&[(0, b"BZh91AY")]),
                "compressed by bzip2; unpack it: bunzip2 FILE",
            ),
            (file(&[(0, b"\x02\x21\x4c\x18")]), "compressed by lz4"),
            (file(&[(0, b"MZ")]), "not an arm64 Image (no `ARM"),
            (file(&[(56, b"ARM\x64"), (24, &[1])]), "big-endian"),
            (file(&[]), "not an arm64 Image (no `ARM"),
        ] {
            let why = check_image(&file).unwrap_err();
            assert!(why.contains(told), "{told}: {why}");
        }
        assert_eq!(check_image(&file(&[(0, b"MZ"), (56, b"ARM\x64")])), Ok(()));
    }
}
