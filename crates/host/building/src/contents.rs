// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects sources whose contents differ from the contents that Cargo last compiled, regardless of the files' times.
//!
//! Cargo compares times: it treats a source that is older than its output as compiled (the documentation of Cargo's
//! module `core::compiler::fingerprint`), even if that source was restored with its old time. So this module records
//! the contents that Cargo last compiled, and touches each source with other contents before Cargo runs again. A
//! touched file is newer than all of Cargo's output in every directory, so one record is enough for all directories, as
//! long as the file's time does not go back: then it is touched again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use shell::digest::xxh3_hex;
use shell::places;

const RECORD: &str = "contents.json";

/// Files and folders of the workspace itself that affect builds.
const OF_WORKSPACE: [&str; 4] = [".cargo", "Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

/// The part of the workspace's manifest that lists its packages.
#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    members: Vec<String>,
}

/// Hashes of files by their paths in the workspace.
type Hashes = BTreeMap<PathBuf, String>;

/// Seconds and nanoseconds.
type Time = (i64, i64);

/// The times of a file or folder. A folder's times change if a file in it appears or disappears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Times {
    /// The time of the content (mtime), which programs can set, and which Cargo compares.
    modified: Time,
    /// The time at which the content or the metadata last changed (ctime), which no program can set.
    changed: Time,
}

#[derive(Debug)]
pub struct Contents {
    hashes: Hashes,
    /// Times from before the files were read.
    times: BTreeMap<PathBuf, Times>,
}

/// The contents that Cargo last compiled.
#[derive(Default, Serialize, Deserialize)]
struct Compiled<'a> {
    /// Whether Cargo has ended. If not, it may have compiled other contents than the recorded ones.
    ended: bool,
    /// The hash of each source, and the times that it had.
    sources: BTreeMap<Cow<'a, Path>, (Cow<'a, str>, Times)>,
}

/// The times of the sources when Cargo began to run.
#[derive(Debug)]
pub struct Touched(BTreeMap<PathBuf, Times>);

impl Contents {
    /// Reads all files of the workspace's packages.
    pub fn read(root: &Path) -> Result<Self> {
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
        let manifest: Manifest = toml::from_str(&manifest).context("Cargo.toml")?;
        let members = manifest.workspace.members.iter();
        let rooms = members.filter_map(|path| path.split('/').next());
        let rooms: BTreeSet<&str> = rooms.chain(OF_WORKSPACE).collect();
        let mut contents = Self {
            hashes: Hashes::new(),
            times: BTreeMap::new(),
        };
        for room in rooms {
            contents.read_below(root, Path::new(room))?;
        }
        Ok(contents)
    }

    /// Reads the file or folder `path`. Leaves out folders of output. A symbolic link counts with the path that it
    /// contains.
    fn read_below(&mut self, root: &Path, path: &Path) -> Result<()> {
        let file = root.join(path);
        let shown = || places::shown(&file);
        let about = match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            about => about.with_context(shown)?,
        };
        if about.is_dir() && !path.ends_with("target") {
            self.times.insert(path.to_owned(), Times::of(&about));
            for entry in fs::read_dir(&file).with_context(shown)? {
                let entry = entry.with_context(shown)?;
                self.read_below(root, &path.join(entry.file_name()))?;
            }
        } else if about.is_file() || about.is_symlink() {
            self.times.insert(path.to_owned(), Times::of(&about));
            let bytes = match about.is_file() {
                true => fs::read(&file),
                false => fs::read_link(&file).map(|to| to.into_os_string().into_encoded_bytes()),
            };
            let bytes = bytes.with_context(shown)?;
            self.hashes.insert(path.to_owned(), xxh3_hex(&bytes));
        }
        Ok(())
    }

    /// Returns the hash of all paths and contents.
    pub fn digest(&self) -> String {
        let mut all = String::new();
        for (path, hash) in &self.hashes {
            all += &format!("{path:?} {hash}\n");
        }
        xxh3_hex(all.as_bytes())
    }

    /// Returns whether `file` was read.
    pub fn has(&self, root: &Path, file: &Path) -> bool {
        let (Ok(root), Ok(file)) = (root.canonicalize(), file.canonicalize()) else {
            return false;
        };
        let path = file.strip_prefix(root);
        path.is_ok_and(|path| self.hashes.contains_key(path))
    }

    /// Touches the sources whose contents differ from the record in `records`, unless they are newer. The outputs in `directories` were built
    /// from the recorded contents. Without a record, removes these directories, because it is unknown from which
    /// sources they were built.
    pub fn touch_changed(
        &self,
        root: &Path,
        records: &Path,
        directories: &[PathBuf],
    ) -> Result<Touched> {
        let record = records.join(RECORD);
        let known = fs::read(&record).ok();
        let known: Option<Compiled> = known.and_then(|text| serde_json::from_slice(&text).ok());
        let mut times = self.times.clone();
        let mut sources = BTreeMap::new();
        if let Some(known) = known {
            let recorded = fs::metadata(&record).map(|about| Times::of(&about).modified);
            let recorded = recorded.with_context(|| places::shown(&record))?;
            sources = known.sources;
            sources.retain(|path, (hash, then)| {
                let same = self.hashes.get(&**path).is_some_and(|now| now == hash);
                let now = self.times.get(&**path);
                let compiled = match known.ended {
                    true => now.is_some_and(|now| now.modified >= then.modified),
                    false => now == Some(then),
                };
                same && compiled
            });
            for path in self.hashes.keys() {
                let file = root.join(path);
                // Such a source is newer than all outputs already.
                let is_newer = known.ended && self.times[path].modified > recorded;
                if !sources.contains_key(&**path) && !is_newer && !file.is_symlink() {
                    times.insert(path.clone(), touch_file(&file)?);
                }
            }
        } else {
            for folder in directories.iter().filter(|folder| folder.exists()) {
                fs::remove_dir_all(folder).with_context(|| places::shown(folder))?;
            }
        }
        // If a build is interrupted, it is unknown which of the other sources were compiled.
        let ended = false;
        crate::write_record(records, RECORD, &Compiled { ended, sources })?;
        Ok(Touched(times))
    }

    /// Writes the final record to `records` after Cargo has succeeded or failed. Leaves out sources that changed
    /// meanwhile, because Cargo may or may not have compiled them. Returns whether nothing changed, at any time since
    /// the sources were read.
    pub fn record(&self, root: &Path, records: &Path, touched: Touched) -> Result<bool> {
        let Touched(before) = touched;
        // Times alone miss a change within one tick of the file system's clock, and contents alone miss a change that
        // was undone.
        let now = Self::read(root)?;
        let kept = self.hashes.iter().filter_map(|(path, hash)| {
            let times = now.times.get(path)?;
            let same = before.get(path) == Some(times) && now.hashes.get(path) == Some(hash);
            same.then(|| (path.into(), (hash.into(), *times)))
        });
        let compiled = Compiled {
            ended: true,
            sources: kept.collect(),
        };
        crate::write_record(records, RECORD, &compiled)?;
        Ok(before == now.times && self.hashes == now.hashes)
    }
}

impl Times {
    fn of(about: &Metadata) -> Self {
        Self {
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

/// Gives a file a new time. Returns its times.
fn touch_file(path: &Path) -> Result<Times> {
    let touch = || {
        let file = File::options().append(true).open(path)?;
        file.set_modified(SystemTime::now())?;
        Ok(Times::of(&file.metadata()?))
    };
    touch().map_err(|error: std::io::Error| {
        let shown = places::shown(path);
        anyhow::Error::new(error).context(format!(
            "{shown} has changed, and can't get a new time, without which Cargo does not compile it"
        ))
    })
}
