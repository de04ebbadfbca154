// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UEFI firmware of the boards that have it.
//!
//! QEMU itself does not include the firmware. A provided emulator comes with firmware, and distributions install
//! firmware in folders of their own.

use std::env;
use std::path::PathBuf;

use anyhow::Result;

use super::provide;
use shell::failure::bad_input;

/// The variable that names a folder to search instead of the folders below.
const VARIABLE: &str = "ROUSE_FIRMWARE";

/// Distributions' folders with the firmware of QEMU's arm64 machines: Debian and its derivatives, Fedora and Arch,
/// SUSE.
const FOLDERS: [&str; 4] = [
    "/usr/share/qemu-efi-aarch64",
    "/usr/share/AAVMF",
    "/usr/share/edk2/aarch64",
    "/usr/share/qemu",
];

/// Finds the firmware file `name`.
///
/// # Errors
/// If there is no such file; the message says how to get it.
pub fn firmware(name: &str) -> Result<PathBuf> {
    if let Some(folder) = env::var_os(VARIABLE).map(PathBuf::from) {
        let Some(path) = find_first([folder.clone()], name) else {
            bad_input!(
                "{VARIABLE}: {} has no file {name}; name a folder that has it, or unset it",
                folder.display()
            );
        };
        return Ok(path);
    }
    let provided = FOLDERS.iter().map(|folder| provide::folder(folder));
    match find_first(provided.chain(FOLDERS.map(PathBuf::from)), name) {
        Some(path) => Ok(path),
        None => bad_input!(
            "the board's firmware {name} is missing: install qemu-efi-aarch64 (Debian) or edk2-aarch64 (Fedora, \
             Arch), or set {VARIABLE} to a folder that has it"
        ),
    }
}

/// Returns the file `name` from the first folder that has it.
fn find_first(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders
        .into_iter()
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
        let look = || find_first(folders.clone(), "x.fd");
        assert_eq!(look(), None);
        fs::write(folders[2].join("x.fd"), "").unwrap();
        fs::write(folders[1].join("x.fd"), "").unwrap();
        assert_eq!(look(), Some(folders[1].join("x.fd")));
    }
}
