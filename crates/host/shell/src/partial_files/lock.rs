// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks of files being written.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How many times to try a lock that another process has, and the time between two tries.
const LOOKS: u32 = 100;
const TICK: Duration = Duration::from_millis(10);

/// Locks a file or folder that was just made. `None` if a sweeper came first, or if another maker has the name.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    for _ in 0..LOOKS {
        match file.try_lock() {
            // The holder is a sweeper, which removes the file now, or another maker that came after a
            // sweeper and keeps the file as long as it lives. So do not wait without a limit.
            Err(TryLockError::WouldBlock) if is_still(&file, path) => thread::sleep(TICK),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                ignore_unsupported(Err(error))?;
                return Ok(is_still(&file, path).then_some(file));
            }
            Ok(()) => return Ok(is_still(&file, path).then_some(file)),
        }
    }
    Ok(None)
}

/// Accepts file systems without locks. On such a file system, remains are reported and not removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_maker_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let theirs = lock(place.path()).unwrap().unwrap();
        assert!(lock(place.path()).unwrap().is_none());
        drop(theirs);
        assert!(lock(place.path()).unwrap().is_some());
    }
}
