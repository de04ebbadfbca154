// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a complete disk image: partition table, file system, files.
//!
//! Equal files always produce an identical disk. All data that usually differ are fixed: the GUIDs of disk and
//! partition, the serial number of the file system, and the times of its files (FAT's first day).

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use anyhow::{Context, Result};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use gpt::GptConfig;
use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::partition::Partition;
use gpt::partition_types::EFI;
use uuid::{Uuid, uuid};

const MIB: usize = 1 << 20;
const SECTOR: usize = 512;
/// Offset of the partition, and size of the free space after it.
const MARGIN: usize = MIB;
/// Smallest size of a disk. A disk of this size has more than 65525 one-sector clusters, as FAT32 requires.
const LEAST: usize = 64 * MIB;
/// Bytes of a disk in addition to its image: margins, file allocation tables, the text file, and space for a second
/// text file that the user adds.
const SPARE: usize = 16 * MIB;

const DISK: Uuid = uuid!("9d6bd3a1-4f0e-4c0b-8d0c-7f2c5f6f7573");
const PARTITION: Uuid = uuid!("2c8fa6f0-0f5e-4a3a-9c5b-1b726f757365");
const SERIAL: u32 = 0x526f_7573;
const LABEL: &[u8; 11] = b"ROUSE      ";

/// Returns a disk with `image` where UEFI looks for it, and `text` where the image looks for it.
pub fn disk_with_files(image: &[u8], text: &str) -> Result<Vec<u8>> {
    let size = (image.len() + SPARE).next_multiple_of(MIB).max(LEAST);
    let mut disk = vec![0; size];
    let partition = MARGIN..size - MARGIN;
    write_table(&mut disk, &partition).context("the disk's partition table")?;
    let partition = &mut disk[partition];
    write_files(partition, image, text).context("the disk's file system")?;
    Ok(disk)
}

/// Writes a partition table with one EFI system partition.
fn write_table(disk: &mut [u8], partition: &std::ops::Range<usize>) -> Result<()> {
    let sectors = disk.len() / SECTOR;
    let mut device = Cursor::new(disk);
    ProtectiveMBR::with_lb_size(u32::try_from(sectors - 1)?).overwrite_lba0(&mut device)?;
    let config = GptConfig::new().writable(true);
    let config = config.logical_block_size(LogicalBlockSize::Lb512);
    let mut table = config.create_from_device(device, Some(DISK))?;
    let entry = Partition {
        part_type_guid: EFI,
        part_guid: PARTITION,
        first_lba: (partition.start / SECTOR) as u64,
        last_lba: (partition.end / SECTOR - 1) as u64,
        flags: 0,
        name: "rouse".into(),
    };
    table.update_partitions(BTreeMap::from([(1, entry)]))?;
    table.write()?;
    Ok(())
}

/// Formats `partition` and writes the files to it.
fn write_files(partition: &mut [u8], image: &[u8], text: &str) -> Result<()> {
    let mut device = Cursor::new(partition);
    let options = FormatVolumeOptions::new()
        .fat_type(FatType::Fat32)
        .bytes_per_cluster(SECTOR as u32)
        .volume_id(SERIAL)
        .volume_label(*LABEL);
    fatfs::format_volume(&mut device, options)?;
    device.set_position(0);
    let system = FileSystem::new(device, FsOptions::new())?;
    let root = system.root_dir();
    let boot = root.create_dir("EFI")?.create_dir("BOOT")?;
    boot.create_file("BOOTAA64.EFI")?.write_all(image)?;
    let name = config::PATH.trim_start_matches('\\');
    root.create_file(name)?.write_all(text.as_bytes())?;
    drop((root, boot));
    system.unmount()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn image(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at % 251) as u8).collect()
    }

    /// Returns the partition's first and last byte, from the table at either end of the disk.
    fn partition(disk: &mut [u8], lba: usize) -> (usize, usize) {
        let table = GptConfig::new()
            .open_from_device(Cursor::new(disk))
            .unwrap();
        let header = match lba {
            1 => table.primary_header().unwrap(),
            _ => table.backup_header().unwrap(),
        };
        assert_eq!(header.disk_guid, DISK);
        let entry = &table.partitions()[&1];
        assert_eq!(
            (entry.part_type_guid.guid, entry.part_guid),
            (EFI.guid, PARTITION)
        );
        (
            entry.first_lba as usize * SECTOR,
            (entry.last_lba as usize + 1) * SECTOR,
        )
    }

    fn read(disk: &mut [u8], path: &str) -> Vec<u8> {
        let (start, end) = partition(disk, 1);
        let device = Cursor::new(&mut disk[start..end]);
        let system = FileSystem::new(device, FsOptions::new()).unwrap();
        assert_eq!(system.fat_type(), FatType::Fat32);
        let mut bytes = Vec::new();
        let mut file = system.root_dir().open_file(path).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_files_are_where_firmware_and_image_look() {
        let mut disk = disk_with_files(&image(700_001), "a=1\n").unwrap();
        assert_eq!(disk.len(), LEAST);
        assert_eq!(read(&mut disk, "efi/boot/bootaa64.efi"), image(700_001));
        assert_eq!(read(&mut disk, "rouse.txt"), b"a=1\n");
        assert_eq!(partition(&mut disk, 1), partition(&mut disk, 2));
    }

    #[test]
    fn a_large_image_gets_a_larger_disk() {
        let size = LEAST + 5;
        let mut disk = disk_with_files(&image(size), "").unwrap();
        assert!(disk.len() > LEAST && disk.len().is_multiple_of(MIB));
        assert_eq!(read(&mut disk, "EFI/BOOT/BOOTAA64.EFI").len(), size);
    }

    #[test]
    fn the_same_files_make_the_same_disk() {
        let make = || disk_with_files(&image(5000), "x").unwrap();
        let mut first = make();
        assert!(first == make());
        // Two disks made in the same second could have equal times even without the fixed time.
        let (start, end) = partition(&mut first, 1);
        let device = Cursor::new(&mut first[start..end]);
        let system = FileSystem::new(device, FsOptions::new()).unwrap();
        for entry in system.root_dir().iter().map(Result::unwrap) {
            let times = (entry.created(), entry.modified().date, entry.accessed());
            assert_eq!(times, (times.0, times.0.date, times.0.date));
            assert_eq!(times.0.date.year, 1980);
        }
    }
}
