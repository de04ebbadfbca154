// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a run. Until the folder is complete, its name shows that it is incomplete. A complete folder gets its
//! final name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::failure::bad_input;
use crate::log::Log;
use crate::output::follow_links;
use crate::{files, partial_files, places};

/// Suffix of the name of an incomplete folder.
const INCOMPLETE: &str = "-incomplete";

/// A folder being written, next to its final place.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    partial: partial_files::Folder,
    /// Files that could not be written, with the reasons.
    lost: Vec<String>,
}

/// Outcome of closing a folder.
#[derive(Debug)]
pub struct Closed {
    /// The folder's path, as messages show it.
    pub place: String,
    /// The missing files and the folder's path, if files are missing.
    pub lacks: Option<String>,
}

impl Folder {
    /// Claims `out`, which must be new or empty. Without `out`, claims a name made up of the time and the board, plus a
    /// number if another run has that name.
    pub fn claim(out: Option<&Path>, board: &str) -> Result<Self> {
        match out {
            Some(out) => Self::claim_new("--out", out),
            None => {
                let name = format!("{}-{board}", now());
                Self::claim_numbered(&places::target().join("runs"), &name)
            }
        }
    }

    /// Claims `out`, the value of `option`, which must be new or empty.
    pub fn claim_new(option: &str, out: &Path) -> Result<Self> {
        let shown = places::shown(out);
        if out == Path::new("-") {
            bad_input!("{option}: a folder can't go to standard output; name one");
        }
        let cant = |error: io::Error| {
            crate::failure::BadInput::error(format!(
                "{option}: {shown} can't be created ({error}); name a folder that can"
            ))
        };
        let target = follow_links(out).map_err(cant)?;
        if is_taken(&target) {
            bad_input!("{option}: {shown} exists and is not an empty folder; name another one");
        }
        match Self::begin_folder(&target).map_err(cant)? {
            Some(folder) => Ok(folder),
            None => bad_input!("{option}: another run is writing to {shown}; name another one"),
        }
    }

    /// Claims the folder `name` in `parent`, or the first free one of `name-2`, `name-3` and so on.
    pub fn claim_numbered(parent: &Path, name: &str) -> Result<Self> {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        for name in std::iter::once(name.to_owned()).chain(numbered) {
            let target = parent.join(name);
            if is_taken(&target) {
                continue;
            }
            match Self::begin_folder(&target) {
                Ok(Some(folder)) => return Ok(folder),
                Ok(None) => {}
                Err(error) => bad_input!(
                    "{} can't be created ({error}); make room for it, or name a folder by --out",
                    places::shown(&target)
                ),
            }
        }
        unreachable!("numbers don't end")
    }

    /// Begins a folder. `None` if another run is making this folder, or has just finished it.
    fn begin_folder(target: &Path) -> io::Result<Option<Self>> {
        let parent = target.parent().unwrap_or(Path::new("/"));
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        fs::create_dir_all(parent)?;
        partial_files::sweep(parent);
        let partial = partial_files::Folder::claim(parent, &name)?;
        // A run that has claimed the incomplete folder's name may also use the final name, unless the final name is
        // taken.
        let partial = partial.filter(|_| !is_taken(target));
        Ok(partial.map(|partial| Self {
            target: target.into(),
            partial,
            lost: Vec::new(),
        }))
    }

    /// Returns the name of the folder without its path.
    pub fn name(&self) -> String {
        let name = self.target.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the path of `name` in the folder, for instance for a subfolder.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.partial.path().join(name)
    }

    /// Begins the console's log in the folder.
    pub fn log(&self) -> Result<Log> {
        Log::create(self.inside("serial.log"))
    }

    /// Writes a file in the folder. [`close`](Self::close) reports a failure.
    pub fn write(&mut self, name: &str, text: &str) {
        if let Err(error) = fs::write(self.inside(name), text) {
            // Half a file is worse than none.
            let _ = fs::remove_file(self.inside(name));
            self.lost.push(format!("{name} can't be written ({error})"));
        }
    }

    /// Moves the folder to its final place if it is complete.
    pub fn close(mut self, log: Option<&Log>) -> Closed {
        if let Some(log) = log {
            log.show_what_is_nowhere();
            self.lost.extend(log.describe_move());
        }
        if self.lost.is_empty() {
            // Renaming replaces an empty folder and fails on one that is no longer empty.
            match self.partial.rename(&self.target) {
                Ok(()) => {
                    return Closed {
                        place: places::shown(&self.target),
                        lacks: None,
                    };
                }
                Err((partial, error)) => {
                    self.partial = partial;
                    let shown = places::shown(&self.target);
                    self.lost
                        .push(format!("{shown} can't be put in place ({error})"));
                }
            }
        }
        self.keep_incomplete()
    }

    /// Keeps the files written so far. `why` is the reason why others are missing.
    pub fn give_up(mut self, why: &str) -> Closed {
        self.lost.push(why.into());
        self.keep_incomplete()
    }

    /// Keeps the files written so far, under a name that shows that they are incomplete.
    fn keep_incomplete(self) -> Closed {
        let name = self.target.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned() + INCOMPLETE;
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let lost = self.lost;
        let mut partial = self.partial;
        for name in std::iter::once(name.clone()).chain(numbered) {
            let target = self.target.with_file_name(name);
            if is_taken(&target) {
                continue;
            }
            partial = match partial.rename(&target) {
                Ok(()) => {
                    return Closed {
                        place: places::shown(&target),
                        lacks: Some(lost.join("; ")),
                    };
                }
                Err((partial, _)) => partial,
            };
            break;
        }
        let place = places::shown(&partial.keep_for_next_run());
        Closed {
            place,
            lacks: Some(lost.join("; ")),
        }
    }
}

impl Closed {
    /// Returns the path of a complete folder.
    pub fn complete(self) -> Result<String> {
        match self.lacks {
            None => Ok(self.place),
            Some(lacks) => Err(anyhow::anyhow!("{lacks}; the rest is in {}", self.place)),
        }
    }
}

/// Returns the time of day in UTC in a form for names, like 20260214-002807.
pub fn now() -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let kept = time.chars().filter(|c| c.is_ascii_digit() || *c == 'T');
    kept.map(|c| if c == 'T' { '-' } else { c }).collect()
}

/// Creates the folder `name` or, if the name is taken, the folder with `name` and the first free number.
pub fn create_numbered(parent: &Path, name: &str) -> Result<PathBuf> {
    files::make_folder(parent)?;
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(()) => return Ok(path),
            Err(error) => return Err(files::refused(&path, "created", &error)),
        }
    }
    unreachable!("numbers don't end")
}

fn is_taken(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

#[cfg(test)]
mod tests;
