// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removing what killed runs have left.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use super::lock::is_still;
use super::{PREFIX, SUFFIX};
use crate::places;
use crate::terminal::note;

/// Removes what killed runs have left in `parent`, and names what it has to leave.
pub fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            remove_if_left(&entry.path());
        }
    }
}

/// Removes the file or folder `path` unless a living process has locked it.
fn remove_if_left(path: &Path) {
    let Ok(kind) = path.symlink_metadata().map(|what| what.file_type()) else {
        return;
    };
    if !kind.is_dir() && !kind.is_file() {
        return;
    }
    // What can't be opened belongs to another user.
    let Ok(file) = File::open(path) else {
        return;
    };
    match file.try_lock() {
        Ok(()) if is_still(&file, path) => {
            let bare = is_bare(path);
            let removed = match kind.is_dir() {
                true => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
            let shown = places::shown(path);
            match removed {
                // A live maker may be about to lock it, and makes another.
                Ok(()) if bare => {}
                Ok(()) => note!("removed what a killed run has left: {shown}"),
                Err(error) => note!("a killed run has left {shown}, remove it by hand ({error})"),
            }
        }
        Ok(()) | Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => note!(
            "left alone: {} may be of a run that goes on ({error}); remove it if there is none",
            places::shown(path)
        ),
    }
}

/// Whether there is nothing in it.
fn is_bare(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => path.metadata().is_ok_and(|what| what.len() == 0),
    }
}
