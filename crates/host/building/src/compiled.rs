// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects sources whose contents differ from the contents that Cargo last compiled, regardless of the files' times.
//!
//! Cargo compares times: it treats a source that is older than its output as compiled (the documentation of Cargo's
//! module `core::compiler::fingerprint`), even if that source was restored with its old time. So this module records
//! the contents that Cargo last compiled, and touches each source with other contents before Cargo runs again. A
//! touched file is newer than all of Cargo's output in every directory, so one record is enough for all directories, as
//! long as the file's time does not go back: then it is touched again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use shell::places;

use crate::contents::{Contents, Times};

const RECORD: &str = "contents.json";

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

impl Compiled<'_> {
    /// Leaves out the sources that Cargo may have to compile again.
    fn retain_compiled(&mut self, contents: &Contents) {
        let ended = self.ended;
        self.sources.retain(|path, (hash, then)| {
            let same = contents.hashes.get(&**path).is_some_and(|now| now == hash);
            let now = contents.times.get(&**path);
            let compiled = match ended {
                true => now.is_some_and(|now| now.modified >= then.modified),
                false => now == Some(then),
            };
            same && compiled
        });
    }
}

/// Touches the sources whose `contents` differ from the record in `records`, unless they are newer than all outputs
/// already. The outputs in `directories` were built from the recorded contents. Removes these directories if there is
/// no record, because it is unknown from which sources they were built, or if a source can't be touched.
pub fn touch_changed(
    contents: &Contents,
    root: &Path,
    records: &Path,
    directories: &[PathBuf],
) -> Result<Touched> {
    let record = records.join(RECORD);
    let known = fs::read(&record).ok();
    let known: Option<Compiled> = known.and_then(|text| serde_json::from_slice(&text).ok());
    let touched = match known {
        Some(mut known) => {
            known.retain_compiled(contents);
            let touched = touch_others(contents, root, &record, &known).ok();
            touched.map(|times| (known.sources, times))
        }
        None => None,
    };
    let (sources, times) = match touched {
        Some(touched) => touched,
        None => {
            for folder in directories.iter().filter(|folder| folder.exists()) {
                fs::remove_dir_all(folder).with_context(|| places::shown(folder))?;
            }
            (BTreeMap::new(), contents.times.clone())
        }
    };
    // If a build is interrupted, it is unknown which of the other sources were compiled.
    let ended = false;
    write_record(records, &Compiled { ended, sources })?;
    Ok(Touched(times))
}

/// Touches the sources that are not in `known`. Returns the times of all sources.
fn touch_others(
    contents: &Contents,
    root: &Path,
    record: &Path,
    known: &Compiled,
) -> io::Result<BTreeMap<PathBuf, Times>> {
    let about = fs::metadata(record)?;
    let recorded = Times::of(&about).modified;
    // The clock may have been set back.
    let new = SystemTime::now().max(about.modified()? + Duration::from_nanos(1));
    let mut times = contents.times.clone();
    for path in contents.hashes.keys() {
        if known.sources.contains_key(&**path) {
            continue;
        }
        let file = root.join(path);
        // A new link may lead to an old file.
        let is_newer = known.ended && contents.times[path].modified > recorded;
        if file.is_symlink() || !is_newer {
            times.insert(path.clone(), touch_file(&file, new)?);
        }
    }
    Ok(times)
}

/// Gives a file a new time. Returns its times. Fails for a symbolic link.
fn touch_file(path: &Path, new: SystemTime) -> io::Result<Times> {
    if path.is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(path)?;
    file.set_modified(new)?;
    Ok(Times::of(&file.metadata()?))
}

/// Writes the final record to `records` after Cargo has succeeded or failed. Leaves out sources that changed meanwhile,
/// because Cargo may or may not have compiled them.
pub fn record(contents: &Contents, root: &Path, records: &Path, touched: Touched) -> Result<()> {
    let Touched(before) = touched;
    // Times alone miss a change within one tick of the file system's clock, and contents alone miss a change that
    // was undone.
    let now = Contents::read(root)?;
    let kept = contents.hashes.iter().filter_map(|(path, hash)| {
        let times = now.times.get(path)?;
        let same = before.get(path) == Some(times) && now.hashes.get(path) == Some(hash);
        same.then(|| (path.into(), (hash.into(), *times)))
    });
    let compiled = Compiled {
        ended: true,
        sources: kept.collect(),
    };
    write_record(records, &compiled)
}

/// Replaces the record in the folder `records`.
fn write_record(records: &Path, record: &Compiled) -> Result<()> {
    let path = records.join(RECORD);
    let new = path.with_extension("new");
    let written = fs::write(&new, serde_json::to_vec(record)?);
    let renamed = written.and_then(|()| fs::rename(&new, &path));
    renamed.with_context(|| places::shown(&path))
}
