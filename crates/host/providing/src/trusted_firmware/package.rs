// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flash from which QEMU's `virt` starts: BL1, and the other stages in a Firmware Image Package (Trusted
//! Firmware-A, `include/tools_share/firmware_image_package.h`).

use anyhow::{Result, bail};

/// Offset of the package in the flash: PLAT_QEMU_FIP_BASE in `plat/qemu/qemu/include/platform_def.h`.
const PACKAGE: usize = 0x4_0000;
/// Size of the first flash, in bytes.
const FLASH: usize = 0x400_0000;

/// The package's magic number, and its serial number, which may be any number but 0.
const NAME: u32 = 0xaa64_0001;
const SERIAL: u32 = 1;
/// Size of the package's header in bytes. `ENTRY` is the size of an entry.
const HEADER: usize = 16;
const ENTRY: usize = 40;

/// UUIDs of BL2, BL31 and BL33, in the package's byte order. The package's last entry has no UUID.
const LOADER: u128 = 0x5ff9_ec0b_4d22_3e4d_a544_c39d_81c7_3f0a;
const STAYS: u128 = 0x47d4_086d_4cfe_9846_9b95_2950_cbbd_5a00;
const NEXT: u128 = 0xd6d0_eea7_fcea_d54b_9782_9934_f234_b6e4;

/// Returns the content of the flash with the firmware's stages, which start `next`.
pub fn make_flash(first: &[u8], loader: &[u8], stays: &[u8], next: &[u8]) -> Result<Vec<u8>> {
    let mut flash = first.to_vec();
    if first.len() > PACKAGE {
        bail!(
            "BL1 of {} bytes does not fit in front of the package",
            first.len()
        );
    }
    flash.resize(PACKAGE, 0);
    flash.extend(make_fip(&[(LOADER, loader), (STAYS, stays), (NEXT, next)]));
    if flash.len() > FLASH {
        bail!(
            "firmware and image of {} bytes do not fit into the flash",
            flash.len()
        );
    }
    Ok(flash)
}

fn make_fip(parts: &[(u128, &[u8])]) -> Vec<u8> {
    let mut package = Vec::new();
    package.extend(NAME.to_le_bytes());
    package.extend(SERIAL.to_le_bytes());
    package.extend(0u64.to_le_bytes());
    let mut offset = HEADER + ENTRY * (parts.len() + 1);
    for (uuid, part) in parts.iter().chain(&[(0, &[][..])]) {
        package.extend(uuid.to_be_bytes());
        for value in [offset, part.len(), 0] {
            package.extend((value as u64).to_le_bytes());
        }
        offset += part.len();
    }
    parts.iter().for_each(|(_, part)| package.extend(*part));
    package
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_where_its_entry_says() {
        let flash = make_flash(b"first", b"loader", b"stays", b"next").unwrap();
        assert!(flash.starts_with(b"first"));
        let package = &flash[PACKAGE..];
        assert_eq!(package[..4], [1, 0, 0x64, 0xaa]);
        let word = |at: usize| u64::from_le_bytes(package[at..at + 8].try_into().unwrap()) as usize;
        for (n, part) in [&b"loader"[..], b"stays", b"next", b""].iter().enumerate() {
            let entry = HEADER + n * ENTRY;
            let (at, size) = (word(entry + 16), word(entry + 24));
            assert_eq!(&package[at..at + size], *part);
        }
        assert_eq!(package[HEADER..HEADER + 4], [0x5f, 0xf9, 0xec, 0x0b]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(make_flash(&[0; PACKAGE + 1], b"", b"", b"").is_err());
        assert!(make_flash(b"", b"", b"", &vec![0; FLASH]).is_err());
    }
}
