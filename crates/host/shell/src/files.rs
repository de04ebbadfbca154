// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files and folders that a verb needs before it can begin. A missing one is reported as bad input, with a
//! remedy.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Result;

use crate::failure::BadInput;
use crate::places;

/// UTF-8's byte order mark, which some editors and spreadsheets put at the start of a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the bytes of a text, and leaves out its byte order mark.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    Ok(bytes)
}

/// Reads a text, and leaves out its byte order mark.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Creates a folder, and its parents.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| refused(path, "created", &error))
}

/// Locks the file `path` as long as the returned value lives. Creates the file if it is missing. Calls `waits` if
/// another process has the lock.
pub fn lock(path: &Path, waits: impl FnOnce()) -> Result<File> {
    path.parent().map_or(Ok(()), make_folder)?;
    let cant = |error| refused(path, "locked", &error);
    let file = File::create(path).map_err(cant)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            waits();
            file.lock().map_err(cant)?;
        }
        Err(TryLockError::Error(error)) => return Err(cant(error)),
    }
    Ok(file)
}

/// Returns the error for an operation on `path`, with the remedy. `done` is the operation's participle, such as
/// "created".
pub fn refused(path: &Path, done: &str, error: &io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room there",
        _ if path.starts_with(places::root()) => {
            "make target/ writable for this user, or use a checkout of your own"
        }
        _ => "make it writable, or name another place",
    };
    BadInput::error(format!(
        "{} can't be {done} ({error}); {remedy}",
        places::shown(path)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::is_bad_input;

    #[test]
    fn a_mark_is_no_text() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("text");
        for (bytes, text) in [
            (&b"\xef\xbb\xbfa\xef\xbb\xbf"[..], Some("a\u{feff}")),
            (b"a", Some("a")),
            (b"", Some("")),
            (b"\xff", None),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read_text(&path).ok().as_deref(), text);
        }
    }

    #[test]
    fn what_can_not_be_had_is_bad_input_with_a_remedy() {
        let below_a_file = Path::new("/dev/null/x");
        let inside = places::inside("Cargo.toml/x");
        for error in [
            make_folder(below_a_file).unwrap_err(),
            lock(&below_a_file.join("lock"), || {}).unwrap_err(),
            make_folder(&inside).unwrap_err(),
        ] {
            assert!(
                is_bad_input(&error) && error.to_string().contains("; make "),
                "{error}"
            );
        }
    }
}
