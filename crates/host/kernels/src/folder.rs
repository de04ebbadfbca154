// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a kernel: the copy of its source, its record, its log, and the finished Image.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use shell::terminal::step;
use shell::{digest, files, partial_files, places};

use crate::tree::{self, BUILD, Seen};

/// File with the record.
const RECORD: &str = "record.json";

/// State of a folder, from which the next build determines the changes that it has to make.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// SHA-256 of everything that the Image is made of; empty until the Image exists.
    pub made_of: String,
    /// SHA-256 of everything that two kernels must have in common to share objects: source, configuration and compiler.
    pub shares: String,
    /// The folder of the source's files.
    pub source: String,
    /// Paths that patches have changed.
    pub patched: Vec<String>,
    /// Number of files that a whole build compiles.
    pub files: u64,
    /// State of the copied files.
    pub seen: Seen,
}

/// A kernel's folder, locked.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    pub record: Record,
    _lock: File,
}

/// The folder of all kernels.
fn kernels() -> PathBuf {
    places::target().join("kernels")
}

impl Folder {
    /// Opens and locks the folder of the kernel with the short name `short` and the identity `named`. Waits for other
    /// runs that build this kernel.
    pub fn open(short: &str, named: &str) -> Result<Self> {
        let path = kernels().join(format!("{short}-{:.8}", digest::sum(named.as_bytes())));
        let waits = || {
            step!(
                "waiting for another run that builds {}",
                places::shown(&path)
            )
        };
        let lock = files::lock(&path.join("lock"), waits)?;
        let record = fs::read(path.join(RECORD)).ok();
        let record = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_whole = record.is_some();
        let folder = Self {
            record: record.unwrap_or_default(),
            _lock: lock,
            path,
        };
        if !is_whole {
            // A copy without a record may be incomplete.
            let _ = fs::remove_dir_all(folder.copy());
        }
        Ok(folder)
    }

    pub fn copy(&self) -> PathBuf {
        self.path.join("source")
    }

    pub fn log(&self) -> PathBuf {
        self.path.join("build.log")
    }

    pub fn image(&self) -> PathBuf {
        self.path.join("Image")
    }

    /// Writes the record.
    pub fn mark_used(&self) -> Result<()> {
        write(&self.path.join(RECORD), &serde_json::to_vec(&self.record)?)
    }

    /// Copies the finished kernel's Image to its place.
    pub fn mark_finished(&self) -> Result<()> {
        let built = self.copy().join(BUILD).join("arch/arm64/boot/Image");
        let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
        write(&self.image(), &bytes)
    }

    /// Removes the copy and the objects if they were made from a folder other than `source`.
    pub fn set_source(&mut self, source: &Path) {
        let source = source.display().to_string();
        if self.record.source != source {
            let _ = fs::remove_dir_all(self.copy());
            self.record = Record {
                source,
                ..Record::default()
            };
        }
    }

    /// If this folder has no objects, takes the objects of another folder with equal source, configuration and
    /// compiler, and also the patched files from which the objects were made. Writes the paths of these files to the
    /// record before it takes the first file. If several folders qualify, takes the one whose list of patched files is
    /// most like `patched`.
    pub fn take_objects(&mut self, patched: &BTreeSet<String>) -> Result<()> {
        let own = self.copy().join(BUILD);
        if own.exists() {
            return Ok(());
        }
        let folders = fs::read_dir(kernels())?.flatten().map(|entry| entry.path());
        let others = folders.filter(|other| *other != self.path);
        let lenders = others.filter_map(|other| Lender::of(other, &self.record.shares));
        let Some(lender) = lenders.min_by_key(|lender| distance(&lender.record.patched, patched))
        else {
            return Ok(());
        };
        step!("taking the objects of {}", places::shown(&lender.path));
        self.record
            .patched
            .extend(lender.record.patched.iter().cloned());
        self.record.files = lender.record.files;
        self.mark_used()?;
        let source = lender.path.join("source");
        for path in &lender.record.patched {
            tree::copy_file(&source.join(path), &self.copy().join(path))?;
        }
        tree::copy_build(&source.join(BUILD), &own)
    }
}

/// A locked folder, whose objects another folder may take.
struct Lender {
    path: PathBuf,
    record: Record,
    _lock: File,
}

impl Lender {
    /// Returns the folder if its kernel is finished, the digest of its shared parts is `shares`, and no run builds it.
    fn of(path: PathBuf, shares: &str) -> Option<Self> {
        let lock = File::open(path.join("lock")).ok()?;
        lock.try_lock().ok()?;
        let record: Record = serde_json::from_slice(&fs::read(path.join(RECORD)).ok()?).ok()?;
        let fits = record.shares == shares && !record.made_of.is_empty();
        fits.then_some(Self {
            path,
            record,
            _lock: lock,
        })
    }
}

/// Returns how many paths are in only one of the two lists.
fn distance(one: &[String], other: &BTreeSet<String>) -> usize {
    let one: BTreeSet<String> = one.iter().cloned().collect();
    one.symmetric_difference(other).count()
}

/// Writes a file completely, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    partial_files::write(path, bytes, 0o644)
        .map_err(|error| files::refused(path, "written", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_has_the_same_patched_files() {
        let ours = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let lists: [&[&str]; 3] = [&[], &["a", "b"], &["a", "c"]];
        let unlike = lists.map(|list| {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            distance(&list, &ours)
        });
        assert_eq!(unlike, [2, 0, 2]);
    }
}
