// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's memory map, in guest physical addresses, and the placement of files in its RAM.

use platform::image::{ALIGN, Image};

use crate::options::MIB;

/// Address of the GIC's distributor.
pub const DISTRIBUTOR: u64 = 0x0800_0000;
/// Size of the distributor's registers in bytes.
pub const DISTRIBUTOR_SIZE: u64 = 0x1_0000;
/// Address of a GICv2's CPU interface.
pub const CPU_INTERFACE: u64 = 0x0801_0000;
/// Size of the CPU interface's registers in bytes (IHI 0048B, 4.1.3).
pub const CPU_INTERFACE_SIZE: u64 = 0x2000;
/// Address of the redistributors, which are contiguous. They have room for as many CPUs as KVM allows.
pub const REDISTRIBUTORS: u64 = 0x1000_0000;
/// Size of a redistributor in bytes: two frames of 64 KiB (IHI 0069H.b, 12.10).
pub const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;
/// Address of the console, a 16550 with one register per byte.
pub const CONSOLE: u64 = 0x0900_0000;
/// Size of the console's registers in bytes.
pub const CONSOLE_SIZE: u64 = 8;
/// The console's interrupt, as an SPI number.
pub const CONSOLE_SPI: u32 = 0;
/// Address of the page from which the guest reads its vCPUs' exit counts (see [`abi::monitor`]).
pub const EXITS: u64 = 0x0901_0000;
/// Size of that page in bytes.
pub const EXITS_SIZE: u64 = 0x1000;
/// The start of RAM.
pub const RAM: u64 = 0x4000_0000;
/// Size of the space for the device tree, at the end of RAM, in bytes. The boot protocol allows no more (Linux,
/// Documentation/arch/arm64/booting.rst, "Setup the device tree").
pub const TREE_SIZE: u64 = 2 * MIB;
/// Size of the smallest page that a kernel may use, in bytes.
const PAGE: u64 = 4096;

/// Addresses of the loaded files in RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Address of the image, whose first instruction is the entry point.
    pub image: u64,
    /// Address of the device tree.
    pub tree: u64,
    /// Address of the initial RAM disk, if it is not empty. The disk begins at a page boundary, so that the kernel can
    /// free all of it.
    pub initrd: u64,
}

/// Assigns addresses in RAM of `size` bytes to `image` (a file of `bytes` bytes), to its initial RAM disk of `initrd`
/// bytes and to the device tree.
///
/// # Errors
/// RAM is too small. The error's value is a number of MiB that suffices.
pub fn load(image: &Image, bytes: u64, initrd: u64, size: u64) -> Result<Loaded, u64> {
    let claimed = image.text_offset.saturating_add(image.size.max(bytes));
    let initrd = initrd.div_ceil(PAGE).saturating_mul(PAGE);
    let behind = TREE_SIZE.saturating_add(initrd);
    let needed = claimed.saturating_add(behind).div_ceil(ALIGN);
    match needed <= size / ALIGN {
        true => Ok(Loaded {
            image: RAM + image.text_offset,
            tree: RAM + size - TREE_SIZE,
            initrd: RAM + size - behind,
        }),
        false => Err(needed * (ALIGN / MIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text_offset: u64, size: u64) -> Image {
        Image {
            text_offset,
            size,
            granule: None,
            anywhere: true,
        }
    }

    #[test]
    fn image_and_tree_share_ram() {
        let loaded = load(&image(0x8_0000, 0x10_0000), 100, 0, 4 * MIB).unwrap();
        assert_eq!(loaded.image, RAM + 0x8_0000);
        assert_eq!(loaded.tree, RAM + 2 * MIB);
    }

    #[test]
    fn an_initial_ram_disk_is_between_them() {
        let loaded = load(&image(0, MIB), 100, 5000, 4 * MIB).unwrap();
        assert_eq!(loaded.initrd, loaded.tree - 8192);
        // The image and the tree fit, but not together with a RAM disk.
        let image = image(0, 2 * MIB);
        assert!(load(&image, 100, 0, 4 * MIB).is_ok());
        assert_eq!(load(&image, 100, 1, 4 * MIB), Err(6));
        assert!(load(&image, 100, u64::MAX, 4 * MIB).is_err());
    }

    #[test]
    fn ram_that_is_too_small_is_told_with_what_does() {
        // The header may claim more memory than the file has bytes.
        assert_eq!(load(&image(0, 3 * MIB), 100, 0, 4 * MIB), Err(6));
        assert_eq!(load(&image(0, 0), 3 * MIB, 0, 4 * MIB), Err(6));
        assert!(load(&image(0, 3 * MIB), 100, 0, 6 * MIB).is_ok());
        assert!(load(&image(u64::MAX - 3, 8), 8, 0, 4 * MIB).is_err());
    }
}
