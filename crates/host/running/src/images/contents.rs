// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects sources whose contents differ from the contents that Cargo last compiled, regardless of the files' times.
//!
//! Cargo compares times: it treats a source that is older than its output as compiled (the documentation of Cargo's
//! module `core::compiler::fingerprint`), even if that source was restored with its old time. So this module records
//! the contents that Cargo last compiled, and touches each source with other contents before Cargo runs again. A
//! touched file is newer than all of Cargo's output in every folder, so one record is enough for all folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::boot_cache::xxh3_hex;
use shell::places;

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

pub struct Sources {
    record: PathBuf,
    root: PathBuf,
    hashes: Hashes,
    changed: BTreeMap<PathBuf, Changed>,
}

/// The time at which a file or its metadata last changed (ctime), in seconds and nanoseconds. No program can set it.
type Changed = (i64, i64);

impl Sources {
    /// Touches the sources below `root` whose contents differ from `record`. The outputs in `folders` were built from
    /// the recorded contents. Without a record, removes these folders, because it is unknown from which sources they
    /// were built.
    pub fn touch_changed(root: &Path, record: PathBuf, folders: &[PathBuf]) -> Result<Self> {
        let known = fs::read(&record).ok();
        let mut known: Option<Hashes> = known.and_then(|text| serde_json::from_slice(&text).ok());
        if known.is_none() {
            for folder in folders.iter().filter(|folder| folder.exists()) {
                fs::remove_dir_all(folder).with_context(|| places::shown(folder))?;
            }
        }
        let hashes = hash_sources(root)?;
        if let Some(known) = &mut known {
            known.retain(|path, hash| hashes.get(path) == Some(hash));
            for path in hashes.keys().filter(|path| !known.contains_key(*path)) {
                touch_file(&root.join(path))?;
            }
        }
        let given = Self {
            record,
            root: root.to_owned(),
            changed: when_changed(root, &hashes),
            hashes,
        };
        // If a build is interrupted, it is unknown which of the touched sources were compiled.
        given.write(&known.unwrap_or_default())?;
        Ok(given)
    }

    /// Writes the final record after Cargo has succeeded or failed. Leaves out sources that changed meanwhile,
    /// because Cargo may or may not have compiled them.
    pub fn write_final_record(mut self) -> Result<()> {
        let now = when_changed(&self.root, &self.hashes);
        let before = &self.changed;
        self.hashes.retain(|path, _| {
            before
                .get(path)
                .is_some_and(|when| now.get(path) == Some(when))
        });
        self.write(&self.hashes)
    }

    fn write(&self, hashes: &Hashes) -> Result<()> {
        let new = self.record.with_extension("new");
        let written = fs::write(&new, serde_json::to_vec(hashes)?);
        let renamed = written.and_then(|()| fs::rename(&new, &self.record));
        renamed.with_context(|| places::shown(&self.record))
    }
}

/// Returns the hashes of all files in the workspace's packages.
fn hash_sources(root: &Path) -> Result<Hashes> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest: Manifest = toml::from_str(&manifest).context("Cargo.toml")?;
    let members = manifest.workspace.members.iter();
    let rooms: BTreeSet<&str> = members.filter_map(|path| path.split('/').next()).collect();
    let mut hashes = Hashes::new();
    for room in rooms {
        hash_folder(root, Path::new(room), &mut hashes)?;
    }
    Ok(hashes)
}

fn hash_folder(root: &Path, folder: &Path, hashes: &mut Hashes) -> Result<()> {
    let shown = |path: &Path| places::shown(&root.join(path));
    for entry in fs::read_dir(root.join(folder)).with_context(|| shown(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.file_name() != "target" {
            hash_folder(root, &path, hashes)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| shown(&path))?;
            hashes.insert(path, xxh3_hex(&bytes));
        }
    }
    Ok(())
}

fn touch_file(path: &Path) -> Result<()> {
    let file = File::options().append(true).open(path);
    let touched = file.and_then(|file| file.set_modified(SystemTime::now()));
    touched.with_context(|| {
        let shown = places::shown(path);
        format!(
            "{shown} has changed, and can't get a new time, without which Cargo does not compile it"
        )
    })
}

fn when_changed(root: &Path, hashes: &Hashes) -> BTreeMap<PathBuf, Changed> {
    let when = |path: &PathBuf| {
        let about = fs::metadata(root.join(path)).ok()?;
        Some((path.clone(), (about.ctime(), about.ctime_nsec())))
    };
    hashes.keys().filter_map(when).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A workspace with one source, and its build folder.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(place.root().join("p/src")).unwrap();
            fs::write(
                place.root().join("Cargo.toml"),
                "[workspace]\nmembers = [\"p/*\"]",
            )
            .unwrap();
            place.write("a");
            place
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn source(&self) -> PathBuf {
            self.root().join("p/src/main.rs")
        }

        fn folder(&self) -> PathBuf {
            self.root().join("target/image-build")
        }

        /// Writes the content `text`, with a file time that is older than any build.
        fn write(&self, text: &str) {
            fs::write(self.source(), text).unwrap();
            let file = File::options().append(true).open(self.source()).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600))
                .unwrap();
        }

        fn begin(&self) -> Sources {
            let record = self.root().join("target/contents.json");
            fs::create_dir_all(self.folder()).unwrap();
            Sources::touch_changed(self.root(), record, &[self.folder()]).unwrap()
        }

        fn build(&self) {
            self.begin().write_final_record().unwrap();
        }

        /// Whether a build would compile the source again.
        fn is_touched(&self) -> bool {
            let modified = || fs::metadata(self.source()).unwrap().modified().unwrap();
            let before = modified();
            self.build();
            modified() > before
        }
    }

    #[test]
    fn a_source_that_is_put_back_with_its_old_time_is_compiled() {
        let place = Place::new();
        place.build();
        assert!(!place.is_touched());
        place.write("b");
        assert!(place.is_touched());
        assert!(!place.is_touched());
        place.write("a");
        assert!(place.is_touched());
    }

    #[test]
    fn a_new_time_alone_is_nothing() {
        let place = Place::new();
        place.build();
        place.write("a");
        assert!(!place.is_touched());
    }

    #[test]
    fn what_changes_during_a_build_is_compiled_again() {
        let place = Place::new();
        place.build();
        let given = place.begin();
        place.write("b");
        place.write("a");
        given.write_final_record().unwrap();
        assert!(place.is_touched());
    }

    #[test]
    fn what_a_build_that_is_cut_short_was_given_is_compiled_again() {
        let place = Place::new();
        place.build();
        place.write("b");
        drop(place.begin());
        place.write("b");
        assert!(place.is_touched());
    }

    #[test]
    fn a_folder_of_which_nothing_is_known_is_removed() {
        let place = Place::new();
        let program = place.folder().join("program");
        place.build();
        assert!(!place.folder().exists());
        fs::create_dir_all(place.folder()).unwrap();
        fs::write(&program, "of this tree").unwrap();
        place.build();
        assert!(program.exists());
        fs::write(place.root().join("target/contents.json"), "cut").unwrap();
        place.build();
        assert!(!program.exists());
    }
}
