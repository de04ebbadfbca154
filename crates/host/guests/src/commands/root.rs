// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a guest's root, as entries of an archive.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use foreign::Quoted;
use shell::failure::bad_input;
use tempfile::TempDir;
use vmm::archive::Archive;

use crate::kernel::read_archive;

/// Large folders that packages contain, but no command needs.
const WITHOUT: [&str; 5] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/lib/aarch64-linux-gnu/gconv",
];
/// Folders that are links in Debian. The package `base-files` makes these links.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Extensions of the file names of tar archives.
const TARS: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".tar.bz2"];
/// Largest total size of all files, in bytes. All files are in memory twice while the kernel unpacks them.
const MOST: u64 = 1 << 30;

/// The kind of the files in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// Files from packages. Some of these files are left out.
    OfPackages,
    /// Files from `--rootfs`. All of these files are added.
    All,
    /// Files from `--rootfs`. All of these files are added to the packages' files.
    Merged,
}

/// Adds the files of unpacked packages.
pub fn add_packages(archive: &mut Archive, folder: &Path) -> Result<()> {
    for name in MERGED {
        if !folder.join(name).exists() {
            archive.link(name, &format!("usr/{name}"));
        }
    }
    for name in ["tmp", "root", "run", "var"] {
        archive.folder(name, 0o1777);
    }
    add_folder(archive, folder, "", Files::OfPackages, &mut 0)
}

/// Adds the files of `--rootfs`. If `given` is a cpio archive, adds nothing, and returns that archive, to be put before
/// our own. `merged` tells whether packages have already turned the folders in [`MERGED`] into links.
pub fn add_rootfs(archive: &mut Archive, given: &Path, merged: bool) -> Result<Vec<u8>> {
    let files = match merged {
        true => Files::Merged,
        false => Files::All,
    };
    if given.is_dir() {
        add_folder(archive, given, "", files, &mut 0)?;
        return Ok(Vec::new());
    }
    let name = given.to_string_lossy();
    let folder = TempDir::new().context("no temporary folder")?;
    if TARS.iter().any(|suffix| name.ends_with(suffix)) {
        unpack_tar(given, folder.path())?;
    } else if is_ext(given) {
        unpack_ext(given, folder.path())?;
    } else if merged {
        bad_input!(
            "--rootfs: with --packages it is a folder, an archive of tar or an image of ext4; unpack {}, and name the folder",
            given.display()
        );
    } else {
        return read_archive("--rootfs", given);
    }
    add_folder(archive, folder.path(), "", files, &mut 0)?;
    Ok(Vec::new())
}

/// Unpacks a tar archive into `folder`.
fn unpack_tar(given: &Path, folder: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    // Device files are left out: the kernel makes them, and an ordinary user can't.
    tar.args([
        "-x",
        "--no-same-owner",
        "--exclude=./dev/*",
        "--exclude=dev/*",
        "-f",
    ])
    .arg(given);
    run_unpacker(tar.arg("-C").arg(folder), given, "tar")
}

/// Copies all files in an ext2, ext3 or ext4 image to `folder`.
fn unpack_ext(given: &Path, folder: &Path) -> Result<()> {
    let mut debugfs = Command::new("debugfs");
    debugfs
        .arg("-R")
        .arg(format!("rdump / \"{}\"", folder.display()));
    run_unpacker(debugfs.arg(given), given, "debugfs of e2fsprogs")?;
    // `debugfs` does not report failures.
    if fs::read_dir(folder)?.next().is_none() {
        bad_input!(
            "--rootfs: {} has no files; name another one",
            given.display()
        );
    }
    Ok(())
}

/// Whether a file is an image of ext2, ext3 or ext4, without partitions (Linux, Documentation/filesystems/ext4).
fn is_ext(given: &Path) -> bool {
    const MAGIC: (u64, [u8; 2]) = (1024 + 0x38, 0xef53_u16.to_le_bytes());
    let mut found = [0; 2];
    let read = File::open(given).and_then(|mut file| {
        file.seek(SeekFrom::Start(MAGIC.0))?;
        file.read_exact(&mut found)
    });
    read.is_ok() && found == MAGIC.1
}

/// Runs `program`, which unpacks `given`.
fn run_unpacker(program: &mut Command, given: &Path, name: &str) -> Result<()> {
    let shown = given.display();
    let output = match program.output() {
        Ok(output) => output,
        Err(error) => bad_input!(
            "--rootfs: {name} can't be started ({error}); install it, or unpack {shown} and name the folder"
        ),
    };
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let first = why.lines().next().unwrap_or_default();
        bad_input!(
            "--rootfs: {shown} can't be unpacked ({}); unpack it, and name the folder",
            Quoted::new(first)
        );
    }
    Ok(())
}

/// Adds the contents of `folder` below `name` in the archive.
fn add_folder(
    archive: &mut Archive,
    folder: &Path,
    name: &str,
    files: Files,
    size: &mut u64,
) -> Result<()> {
    let told = || folder.display().to_string();
    let mut entries: Vec<_> = fs::read_dir(folder)
        .with_context(told)?
        .collect::<Result<_, _>>()
        .with_context(told)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let shown = path.display();
        let file_name = entry.file_name();
        let Some(last) = file_name.to_str() else {
            bad_input!("--rootfs: {shown} has a name that is no text; rename it");
        };
        let name = match name {
            "" => last.to_owned(),
            above => format!("{above}/{last}"),
        };
        let is_merged = files == Files::Merged && MERGED.contains(&name.as_str());
        if is_merged && path.is_symlink() {
            continue;
        }
        let name = if is_merged {
            format!("usr/{name}")
        } else {
            name
        };
        let what = path.symlink_metadata().with_context(|| shown.to_string())?;
        let mode = what.permissions().mode() & 0o7777;
        if what.is_symlink() {
            let target = fs::read_link(&path).with_context(|| shown.to_string())?;
            archive.link(&name, &target.to_string_lossy());
        } else if what.is_dir() {
            if files != Files::OfPackages || !WITHOUT.contains(&name.as_str()) {
                archive.folder(&name, mode);
                add_folder(archive, &path, &name, files, size)?;
            }
        } else if what.is_file() {
            *size += what.len();
            if *size > MOST {
                bad_input!("--rootfs: more than {} MiB; leave some out", MOST >> 20);
            }
            let content = match fs::read(&path) {
                Ok(content) => content,
                Err(error) => {
                    bad_input!("--rootfs: {shown} can't be read ({error}); make it readable")
                }
            };
            archive.file(&name, mode, &content);
        }
        // Device files and sockets are left out: the kernel makes device files, and a socket belongs to a process.
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_folders_and_links_are_added() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/perf"), "#!").unwrap();
        fs::create_dir_all(root.join("usr/share/doc")).unwrap();
        fs::write(root.join("usr/share/doc/long"), "text").unwrap();
        symlink("perf", root.join("usr/bin/p")).unwrap();
        let mut archive = Archive::default();
        add_packages(&mut archive, root).unwrap();
        let text = String::from_utf8_lossy(&archive.end()).into_owned();
        for name in ["usr/bin/perf\0", "usr/bin/p\0", "bin\0", "usr/lib"] {
            assert!(text.contains(name), "{name}");
        }
        assert!(!text.contains("long"));
    }

    #[test]
    fn folders_that_packages_made_links_of_go_where_these_lead() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("bin")).unwrap();
        fs::write(place.path().join("bin/tool"), "#!").unwrap();
        symlink("usr/lib", place.path().join("lib")).unwrap();
        let text = |merged| {
            let mut archive = Archive::default();
            assert!(
                add_rootfs(&mut archive, place.path(), merged)
                    .unwrap()
                    .is_empty()
            );
            String::from_utf8_lossy(&archive.end()).into_owned()
        };
        let merged = text(true);
        assert!(merged.contains("usr/bin/tool\0") && !merged.contains("lib\0"));
        let alone = text(false);
        assert!(
            !alone.contains("usr/bin") && alone.contains("bin/tool\0") && alone.contains("lib\0")
        );
        // The contents of a cpio archive are not read.
        let cpio = place.path().join("a.cpio");
        fs::write(&cpio, "070701").unwrap();
        let why = add_rootfs(&mut Archive::default(), &cpio, true)
            .unwrap_err()
            .to_string();
        assert!(why.contains("name the folder"), "{why}");
    }

    #[test]
    fn an_archive_of_tar_is_unpacked() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("root")).unwrap();
        fs::write(place.path().join("root/hello"), "text").unwrap();
        let tar = place.path().join("root.tar.gz");
        let made = Command::new("tar")
            .args(["-czf"])
            .arg(&tar)
            .arg("-C")
            .arg(place.path().join("root"))
            .arg(".")
            .status();
        assert!(made.unwrap().success());
        let mut archive = Archive::default();
        assert!(add_rootfs(&mut archive, &tar, false).unwrap().is_empty());
        assert!(String::from_utf8_lossy(&archive.end()).contains("hello\0"));
        fs::write(&tar, "no archive").unwrap();
        let why = add_rootfs(&mut Archive::default(), &tar, false)
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("--rootfs: ") && why.contains("name the folder"),
            "{why}"
        );
        assert!(!why.contains('\n'), "{why}");
    }

    #[test]
    fn an_image_of_ext4_is_read() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("root.img");
        let made = Command::new("mkfs.ext4")
            .arg("-q")
            .arg(&image)
            .arg("4M")
            .output();
        // Not every computer has this program.
        if !made.is_ok_and(|made| made.status.success()) {
            return;
        }
        assert!(is_ext(&image));
        fs::write(place.path().join("hello"), "text").unwrap();
        let copied = Command::new("debugfs")
            .args(["-w", "-R"])
            .arg(format!(
                "write {} hello",
                place.path().join("hello").display()
            ))
            .arg(&image)
            .output();
        assert!(copied.unwrap().status.success());
        let mut archive = Archive::default();
        assert!(add_rootfs(&mut archive, &image, false).unwrap().is_empty());
        assert!(String::from_utf8_lossy(&archive.end()).contains("hello\0"));
        assert!(!is_ext(&place.path().join("hello")));
    }
}
