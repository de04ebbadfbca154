// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds traces of the machine on which a file was made. These traces are paths on that machine.
//!
//! Such a path differs from machine to machine, so the file would also differ. A compiler leaves paths of sources in
//! panic messages and in debug information.

use std::env;
use std::path::{Path, PathBuf};

use memchr::memmem;

use providing::toolchain;
use shell::places;

/// Number of bytes of a file to show before and after a path.
const AROUND: usize = 40;

/// The folders of a machine, as prefixes of paths.
#[derive(Debug)]
pub struct Traces(Vec<Vec<u8>>);

impl Traces {
    /// Returns four folders: the checkout, Cargo's, the toolchain's, and the user's home.
    pub fn of_this_machine() -> Self {
        let variable = |name| env::var_os(name).map(PathBuf::from);
        let folders = [
            Some(places::root().into()),
            Some(places::target()),
            Some(toolchain::home()),
            variable("RUSTUP_HOME"),
            toolchain::sysroot(),
            env::home_dir(),
        ];
        Self::of_folders(folders.into_iter().flatten())
    }

    /// Returns `folders`, each under its given path and under its path without symbolic links.
    pub fn of_folders(folders: impl Iterator<Item = PathBuf>) -> Self {
        let names = folders.flat_map(|folder| [folder.canonicalize().ok(), Some(folder)]);
        // `/` is part of every path.
        let names = names
            .flatten()
            .filter(|name| name.is_absolute() && name.parent().is_some());
        let mut needles: Vec<_> = names.map(|name| path_prefix(&name)).collect();
        needles.sort();
        needles.dedup();
        Self(needles)
    }

    /// Returns the first path in `bytes` that is below one of the folders, with its offset and the surrounding bytes.
    pub fn find_path(&self, bytes: &[u8]) -> Option<String> {
        let found = self
            .0
            .iter()
            .filter_map(|needle| first_offset(bytes, needle));
        let at = found.min()?;
        let around = &bytes[at.saturating_sub(AROUND)..bytes.len().min(at + 2 * AROUND)];
        let printable = |&byte: &u8| match byte {
            b' '..=b'~' => char::from(byte),
            _ => '.',
        };
        let around: String = around.iter().map(printable).collect();
        Some(format!("a path of this machine at byte {at}: {around}"))
    }
}

/// Returns a folder's name as the prefix of a file's path in the folder.
fn path_prefix(folder: &Path) -> Vec<u8> {
    let mut needle = folder.as_os_str().as_encoded_bytes().to_vec();
    needle.push(b'/');
    needle
}

/// Returns the first offset of `needle` in `bytes`. A folder in the root, such as `/src/`, does not count within
/// another path, such as `x/src/y`.
fn first_offset(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let short = needle.iter().filter(|&&byte| byte == b'/').count() == 2;
    let inside = |at: usize| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    memmem::find_iter(bytes, needle).find(|&at| !(short && inside(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(folders: &[&str]) -> Traces {
        Traces::of_folders(folders.iter().map(PathBuf::from))
    }

    #[test]
    fn a_path_below_a_folder_is_found_wherever_it_is() {
        let traces = traces(&["/home/ada/rouse", "/home/ada"]);
        let found = traces.find_path(b"\0\x01of a panic/home/ada/.cargo/x.rs:1\0");
        let found = found.unwrap();
        assert!(found.contains("at byte 12: ..of a panic/home/ada/.cargo/x.rs:1."));
        assert_eq!(traces.find_path(b"/home/adam/x and /home/ada"), None);
        assert!(traces.find_path(b"/home/ada/").is_some());
    }

    #[test]
    fn a_folder_of_the_root_is_told_from_the_middle_of_a_path() {
        let traces = traces(&["/src", "/"]);
        assert_eq!(traces.find_path(b"hypervisor/src/main.rs"), None);
        assert!(
            traces
                .find_path(b"hypervisor/src/main.rs\0/src/main.rs")
                .is_some()
        );
        assert!(traces.find_path(b"/src/main.rs").is_some());
    }

    #[test]
    fn the_folders_of_this_machine_are_known() {
        let traces = Traces::of_this_machine();
        for folder in [places::root().to_owned(), toolchain::home()] {
            let path = folder.join("x.rs").display().to_string();
            assert!(traces.find_path(path.as_bytes()).is_some(), "{path}");
        }
    }
}
