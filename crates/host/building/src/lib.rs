// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds programs with Cargo, unless they are built already.
//!
//! Cargo takes some tenths of a second to find that there is nothing to do, and it compares the times of sources. This
//! crate compares their contents. It keeps two records:
//!
//! - `contents.json`: the hash of each source that Cargo last compiled. A source with other contents gets a new time
//!   before Cargo runs ([`compiled`]).
//! - `programs.json`: for each program, the hash of the inputs of its latest build, and the hash of the built file. If
//!   both hashes match, the file is what Cargo would build, and Cargo is not started ([`inputs`], [`programs`]).

mod cargo;
mod compiled;
mod contents;
mod inputs;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use serde::Serialize;

use compiled::Touched;
use contents::Contents;
use programs::Programs;
use shell::places;
use shell::timings::{Part, time_part};

/// One call of `cargo build`.
#[derive(Debug)]
pub struct Build<'a> {
    /// Cargo's target directory.
    pub directory: &'a Path,
    /// Arguments of `cargo build`.
    pub arguments: &'a [&'a str],
    /// The files of the programs that this call builds.
    pub programs: &'a [PathBuf],
    /// Text that is printed after each of Cargo's lines.
    pub note: &'a str,
}

/// The contents of the workspace's sources, from which programs are built.
#[derive(Debug)]
pub struct Sources<'a> {
    root: &'a Path,
    /// The folder of the records.
    records: &'a Path,
    /// All of Cargo's target directories.
    directories: &'a [PathBuf],
    contents: Contents,
    known: Programs,
    /// Set when Cargo is about to run for the first time.
    touched: Mutex<Option<Touched>>,
    /// For each successful call of Cargo, the hash of its inputs, and its programs.
    built: Mutex<Vec<(String, Vec<PathBuf>)>>,
}

impl<'a> Sources<'a> {
    /// Reads the sources of the workspace at `root`, and the records in the folder `records`. Every build must go to
    /// one of the target directories `directories`. The caller keeps other processes from building there until it has
    /// called [`Self::write_records`].
    pub fn read(root: &'a Path, records: &'a Path, directories: &'a [PathBuf]) -> Result<Self> {
        Ok(Self {
            root,
            records,
            directories,
            contents: time_part(Part::Cargo, || Contents::read(root))?,
            known: Programs::read(records),
            touched: Mutex::default(),
            built: Mutex::default(),
        })
    }

    /// Builds programs from these sources, unless they are built already.
    pub fn build(&self, build: &Build) -> Result<()> {
        let inputs = || inputs::hash(self.root, &self.contents, build);
        time_part(Part::Cargo, || {
            self.build_by(build, &inputs, || cargo::build(build))
        })
    }

    /// Like [`Self::build`]. `inputs` returns the hash of all inputs, if it is known, and `run` runs Cargo.
    fn build_by(
        &self,
        build: &Build,
        inputs: &dyn Fn() -> Option<String>,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = inputs();
        let is_built = |inputs| self.known.are_built(self.root, build.programs, inputs);
        if before.as_deref().is_some_and(is_built) {
            return Ok(());
        }
        self.touch_changed()?;
        run()?;
        if let Some(before) = before
            && inputs().is_some_and(|after| after == before)
        {
            lock(&self.built).push((before, build.programs.to_vec()));
        }
        Ok(())
    }

    /// Touches the changed sources before Cargo runs for the first time.
    fn touch_changed(&self) -> Result<()> {
        let mut touched = lock(&self.touched);
        if touched.is_none() {
            let touching =
                compiled::touch_changed(&self.contents, self.root, self.records, self.directories);
            *touched = Some(touching?);
        }
        Ok(())
    }

    /// Records the builds, after each of them has succeeded or failed.
    pub fn write_records(self) -> Result<()> {
        let Some(touched) = lock(&self.touched).take() else {
            return Ok(());
        };
        let unchanged = compiled::record(&self.contents, self.root, self.records, touched)?;
        if !unchanged {
            return Ok(());
        }
        let mut known = self.known;
        for (inputs, programs) in lock(&self.built).drain(..) {
            for program in programs {
                known.add(self.root, &program, &inputs, &self.contents);
            }
        }
        known.write(self.records)
    }
}

/// Replaces the record `name` in the folder `records`.
fn write_record(records: &Path, name: &str, record: &impl Serialize) -> Result<()> {
    let path = records.join(name);
    let new = path.with_extension("new");
    let written = fs::write(&new, serde_json::to_vec(record)?);
    let renamed = written.and_then(|()| fs::rename(&new, &path));
    renamed.with_context(|| places::shown(&path))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
