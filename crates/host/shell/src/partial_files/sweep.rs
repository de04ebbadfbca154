// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes the remains of killed runs, but keeps their measurements under a name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::lock::is_still;
use super::{PREFIX, SUFFIX};
use crate::places;
use crate::terminal::note;

/// Suffix of the name of a folder whose run was killed.
const KILLED: &str = "-killed";
/// The file with everything that a run has measured so far.
const LOG: &str = "serial.log";

/// Removes the remains of killed runs in `parent`, except measurements, which get a name. Prints the names of remains
/// that it can't remove.
pub fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let name = name.strip_prefix(PREFIX);
        if let Some(name) = name.and_then(|name| name.strip_suffix(SUFFIX)) {
            sweep_one(&entry.path(), name);
        }
    }
}

/// Removes or names the file or folder `path`, with the final name `name`, unless a living process has locked it.
fn sweep_one(path: &Path, name: &str) {
    let Ok(kind) = path.symlink_metadata().map(|what| what.file_type()) else {
        return;
    };
    if !kind.is_dir() && !kind.is_file() {
        return;
    }
    // A file that can't be opened belongs to another user.
    let Ok(file) = File::open(path) else {
        return;
    };
    match file.try_lock() {
        Ok(()) if is_still(&file, path) => match kind.is_dir() && has_measured(path) {
            true => keep_measured(path, name),
            false => remove_remains(path, kind.is_dir()),
        },
        Ok(()) | Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => note!(
            "left alone: {} may be of a run that goes on ({error}); remove it if there is no such run",
            places::shown(path)
        ),
    }
}

fn remove_remains(path: &Path, is_folder: bool) {
    let bare = is_empty(path);
    let removed = match is_folder {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    let shown = places::shown(path);
    match removed {
        // A living maker may be about to lock this file, and will then make another one.
        Ok(()) if bare => {}
        Ok(()) => note!("removed the remains of a killed run: {shown}"),
        Err(error) => note!("a killed run has left {shown}; remove it by hand ({error})"),
    }
}

/// Gives the folder of a killed run a free name.
fn keep_measured(path: &Path, name: &str) {
    match rename_to_free(path, name) {
        Ok(kept) => {
            note!("kept the results of a killed run: {}", places::shown(&kept));
            // The folder may contain partial folders.
            sweep(&kept);
        }
        Err(error) => note!(
            "a killed run has left {}, which can't be renamed ({error}); rename it by hand",
            places::shown(path)
        ),
    }
}

fn rename_to_free(path: &Path, name: &str) -> io::Result<PathBuf> {
    let numbered = (2..).map(|number| format!("{name}{KILLED}-{number}"));
    for name in std::iter::once(format!("{name}{KILLED}")).chain(numbered) {
        let kept = path.with_file_name(name);
        if kept.symlink_metadata().is_err() {
            return fs::rename(path, &kept).map(|()| kept);
        }
    }
    unreachable!("numbers don't end")
}

/// Whether a machine has printed anything to a log in `folder` or below it.
fn has_measured(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => has_measured(&entry.path()),
        Ok(kind) => kind.is_file() && entry.file_name() == LOG && !is_empty(&entry.path()),
        Err(_) => false,
    })
}

/// Whether the file or folder at `path` is empty.
fn is_empty(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => path.metadata().is_ok_and(|what| what.len() == 0),
    }
}
