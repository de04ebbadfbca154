// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the workspace's sources.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use shell::digest::xxh3_hex;
use shell::places;
use start::built;

/// Hashes of files by their paths in the workspace.
pub type Hashes = BTreeMap<PathBuf, String>;

/// Seconds and nanoseconds.
pub type Time = (i64, i64);

/// The times of a file or folder. A folder's times change if a file in it appears or disappears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The time of the content (mtime), which programs can set, and which Cargo compares.
    pub modified: Time,
    /// The time at which the content or the metadata last changed (ctime), which no program can set.
    pub changed: Time,
}

#[derive(Debug)]
pub struct Contents {
    pub hashes: Hashes,
    /// Times from before the files were read.
    pub times: BTreeMap<PathBuf, Times>,
}

impl Contents {
    /// Reads all files of the workspace's packages, and the workspace's own files that affect builds.
    pub fn read(root: &Path) -> Result<Self> {
        let mut contents = Self {
            hashes: Hashes::new(),
            times: BTreeMap::new(),
        };
        let inputs = built::inputs_of(root).with_context(|| places::shown(root))?;
        for input in inputs {
            contents.read_below(root, input.strip_prefix(root)?)?;
        }
        Ok(contents)
    }

    /// Reads the file or folder `path`. Leaves out folders of output, and files that vanish, such as an editor's. A
    /// symbolic link counts with the path that it contains.
    fn read_below(&mut self, root: &Path, path: &Path) -> Result<()> {
        let file = root.join(path);
        let shown = || places::shown(&file);
        let Some(about) = if_found(fs::symlink_metadata(&file)).with_context(shown)? else {
            return Ok(());
        };
        if about.is_dir() && !path.ends_with(built::OUTPUT) {
            self.times.insert(path.to_owned(), Times::of(&about));
            let entries = if_found(fs::read_dir(&file)).with_context(shown)?;
            for entry in entries.into_iter().flatten() {
                let name = entry.with_context(shown)?.file_name();
                // Cargo has no sources whose names are not UTF-8.
                if name.to_str().is_some() {
                    self.read_below(root, &path.join(name))?;
                }
            }
        } else if about.is_file() || about.is_symlink() {
            let bytes = match about.is_file() {
                true => fs::read(&file),
                false => fs::read_link(&file).map(|to| to.into_os_string().into_encoded_bytes()),
            };
            let hash = match bytes {
                // Cargo reports such a file if it needs the file.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => "unreadable".into(),
                bytes => match if_found(bytes).with_context(shown)? {
                    Some(bytes) => xxh3_hex(&bytes),
                    None => return Ok(()),
                },
            };
            self.times.insert(path.to_owned(), Times::of(&about));
            self.hashes.insert(path.to_owned(), hash);
        }
        Ok(())
    }
}

/// Returns `None` if a file or folder is missing.
fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

impl Times {
    pub fn of(about: &Metadata) -> Self {
        Self {
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}
