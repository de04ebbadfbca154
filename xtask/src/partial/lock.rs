// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks of what is in the making.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Locks what was just made; `None` if a sweeper was first.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    // Only a sweeper can have the lock, and not for long.
    ignore_unsupported(file.lock())?;
    Ok(is_still(&file, path).then_some(file))
}

/// Some file systems know no locks: what is left there is named, not removed.
pub fn ignore_unsupported(locked: io::Result<()>) -> io::Result<()> {
    match locked {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Whether `path` still names `file`.
pub fn is_still(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(named)) => (file.dev(), file.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}
