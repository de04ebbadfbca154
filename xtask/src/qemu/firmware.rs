// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UEFI firmware of boards that have one.
//!
//! QEMU does not bring it. It comes with the emulator where that was provided;
//! elsewhere distributions keep it in folders of their own.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::provide;
use crate::failure::bad_input;

/// Names a file to use instead of looking for one.
const VARIABLE: &str = "ROUSE_FIRMWARE";

/// Where distributions keep the firmware of QEMU's arm64 machines: Debian and
/// its derivatives, Fedora and Arch, SUSE.
const FOLDERS: [&str; 3] = [
    "/usr/share/qemu-efi-aarch64",
    "/usr/share/edk2/aarch64",
    "/usr/share/qemu",
];

/// The firmware file called `name`.
///
/// # Errors
/// There is none: says how to get it.
pub fn firmware(name: &str) -> Result<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE).map(PathBuf::from) {
        if named.is_file() {
            return Ok(named);
        }
        bad_input!(
            "{VARIABLE}: {} is no file; name a {name}, or unset it",
            named.display()
        );
    }
    let folders = [provide::firmware_folder()];
    let folders = folders.iter().map(PathBuf::as_path);
    match first(folders.chain(FOLDERS.map(Path::new)), name) {
        Some(path) => Ok(path),
        None => bad_input!(
            "the board's firmware {name} is missing: install qemu-efi-aarch64 (Debian) or edk2-aarch64 (Fedora, \
             Arch), or set {VARIABLE}=/path/to/{name}"
        ),
    }
}

/// The first folder's file of this name.
fn first<'p>(folders: impl Iterator<Item = &'p Path>, name: &str) -> Option<PathBuf> {
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_folder_that_has_it_wins() {
        let parent = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| parent.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let look = || first(folders.iter().map(PathBuf::as_path), "x.fd");
        assert_eq!(look(), None);
        fs::write(folders[2].join("x.fd"), "").unwrap();
        fs::write(folders[1].join("x.fd"), "").unwrap();
        assert_eq!(look(), Some(folders[1].join("x.fd")));
    }
}
