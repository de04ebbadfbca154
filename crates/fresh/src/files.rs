// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file in a line: its time, its length, its path; or that it is not there.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Stands where there is no file.
const NONE: &str = "none";

/// A file, as it is now.
#[derive(Debug)]
pub struct About {
    pub text: String,
    /// When it was written; `None` if it is not there.
    pub changed: Option<SystemTime>,
}

/// The line of `path`; `None` if it can't be told in one.
pub fn line(path: &Path) -> Option<About> {
    let name = path.to_str().filter(|name| !name.contains('\n'))?;
    let (about, changed) = match fs::metadata(path) {
        Ok(about) => {
            let changed = about.modified().ok()?;
            let time = changed.duration_since(UNIX_EPOCH).ok()?;
            (
                format!("{} {}", time.as_nanos(), about.len()),
                Some(changed),
            )
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (NONE.into(), None),
        Err(_) => return None,
    };
    let text = format!("{about} file {name}\n");
    Some(About { text, changed })
}

/// Whether the file of a line still has that line.
pub fn is_as_it_was(text: &str) -> bool {
    let Some((_, name)) = text.split_once(" file ") else {
        return false;
    };
    line(Path::new(name)).is_some_and(|now| now.text.strip_suffix('\n') == Some(text))
}
