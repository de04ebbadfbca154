// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images below `target/image`. A run needs its own images for as long as it lasts, while other runs build different
//! ones.
//!
//! A folder has files that were built together, and its name contains their hash. The folder is never written again,
//! and runs that need the same files share it. So the commands of a run work until something else is built for the same
//! board.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use twox_hash::XxHash64;

use crate::files;
use crate::partial_files::{self, Shared};

/// Number of digits in the contents' hash.
const DIGITS: usize = 16;
/// Interval between checks of whether another run has finished this folder.
const TICK: Duration = Duration::from_millis(10);

/// The name and the contents of a file.
pub type Named<'a> = (&'a str, &'a [u8]);

/// A folder that stays unchanged while this value exists.
#[derive(Debug)]
pub struct Kept {
    pub path: PathBuf,
    _held: Shared,
}

/// Returns the folder for `kind` in `parent` that contains `files`. Removes older folders that nothing needs.
pub fn find_or_make(parent: &Path, kind: &str, files: &[Named]) -> Result<Kept> {
    files::make_folder(parent)?;
    partial_files::sweep(parent);
    let mut salt = 0;
    loop {
        let name = folder_name(kind, files, salt);
        let path = parent.join(&name);
        match Shared::lock(&path) {
            Some(_held) if has_files(&path, files) => {
                remove_others(parent, kind, &name);
                return Ok(Kept { path, _held });
            }
            // The folder is damaged. The run that holds it may keep it.
            Some(held) => {
                drop(held);
                Shared::remove_unless_held(&path);
                salt += 1;
            }
            None => make_folder(parent, &name, files)
                .map_err(|error| files::refused(parent, "written", &error))?,
        }
    }
}

/// Makes the folder `name` unless another run does.
fn make_folder(parent: &Path, name: &str, files: &[Named]) -> io::Result<()> {
    let Some(folder) = partial_files::Folder::claim(parent, name)? else {
        thread::sleep(TICK);
        return Ok(());
    };
    for (file, bytes) in files {
        fs::write(folder.path().join(file), bytes)?;
    }
    // Another run may have been first.
    match folder.rename(&parent.join(name)) {
        Err((_, error)) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

/// Returns the name of the folder. The hash is a fast one, because other kernels are large and each boot needs their
/// hash. A collision is harmless, because [`has_files`] compares the contents.
fn folder_name(kind: &str, files: &[Named], salt: u32) -> String {
    let mut hasher = XxHash64::with_seed(salt.into());
    for (file, bytes) in files {
        // The lengths keep the end of one part from being taken for the start of the next.
        for part in [file.as_bytes(), bytes] {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
    }
    format!("{kind}-{:0DIGITS$x}", hasher.finish())
}

fn has_files(folder: &Path, files: &[Named]) -> bool {
    let mut files = files.iter();
    files.all(|(name, bytes)| fs::read(folder.join(name)).is_ok_and(|found| found == *bytes))
}

/// Removes the folders for `kind` that no run needs, except `current`.
fn remove_others(parent: &Path, kind: &str, current: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let rest = name
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('-'));
        let hex = |rest: &str| rest.len() == DIGITS && rest.chars().all(|c| c.is_ascii_hexdigit());
        if rest.is_some_and(hex) && name != current {
            Shared::remove_unless_held(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_and_what_nothing_needs_goes() {
        let parent = tempfile::tempdir().unwrap();
        let keep = |kind, text: &[u8]| find_or_make(parent.path(), kind, &[("x", text)]).unwrap();
        let other = keep("virt-uefi", b"other").path;
        let (one, two) = (keep("virt", b"one"), keep("virt", b"two"));
        let again = keep("virt", b"one");
        assert_eq!(one.path, again.path);
        assert_eq!(fs::read(one.path.join("x")).unwrap(), b"one");
        assert_eq!(fs::read(two.path.join("x")).unwrap(), b"two");
        drop(two);
        let three = keep("virt", b"three");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 3);
        drop((one, again));
        assert!(three.path.exists() && other.exists());
    }

    #[test]
    fn a_damaged_one_is_not_taken() {
        let parent = tempfile::tempdir().unwrap();
        let files: [Named; 2] = [("x", b"1"), ("y", b"2")];
        let first = find_or_make(parent.path(), "virt", &files).unwrap();
        fs::write(first.path.join("y"), "3").unwrap();
        let second = find_or_make(parent.path(), "virt", &files).unwrap();
        assert!(has_files(&second.path, &files));
        assert_ne!(first.path, second.path);
    }

    #[test]
    fn many_at_once_get_what_they_asked_for() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|threads| {
            for number in 0..8 {
                let parent = parent.path();
                threads.spawn(move || {
                    for round in 0..50 {
                        let text = format!("{}", (number + round) % 4);
                        let files: [Named; 1] = [("x", text.as_bytes())];
                        let kept = find_or_make(parent, "virt", &files).unwrap();
                        assert!(has_files(&kept.path, &files));
                    }
                });
            }
        });
    }
}
