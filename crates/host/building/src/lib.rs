// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds programs with Cargo, unless they are built already.
//!
//! Cargo takes some tenths of a second to find that there is nothing to do. It is not started if the inputs are in the
//! state from which the programs were built ([`State`]).
//!
//! Cargo compares the times of sources. So `contents.json` records the hash of each source that Cargo last compiled, and
//! a source with other contents gets a new time before Cargo runs ([`compiled`]).

mod cargo;
mod compiled;
mod contents;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use compiled::Touched;
use contents::Contents;
use providing::toolchain;
use shell::timings::{Part, time_part};
use start::built::State;

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

/// The workspace's sources, from which programs are built.
#[derive(Debug)]
pub struct Sources<'a> {
    root: &'a Path,
    /// The folder of the record.
    records: &'a Path,
    /// All of Cargo's target directories.
    directories: &'a [PathBuf],
    /// The state of the inputs, if it is known.
    state: Option<State>,
    /// The contents, which are read when Cargo is about to run for the first time.
    contents: Mutex<Option<(Contents, Touched)>>,
    /// The programs of each successful call of Cargo, with the inputs of that call alone.
    built: Mutex<Vec<(String, PathBuf)>>,
}

impl<'a> Sources<'a> {
    /// Returns the sources of the workspace at `root`, with the record in the folder `records`. Every build must go to
    /// one of the target directories `directories`. The caller keeps other processes from building there until it has
    /// called [`Self::write_records`].
    pub fn new(root: &'a Path, records: &'a Path, directories: &'a [PathBuf]) -> Self {
        Self {
            root,
            records,
            directories,
            state: time_part(Part::Cargo, || read_state(root)),
            contents: Mutex::default(),
            built: Mutex::default(),
        }
    }

    /// Builds programs from these sources, unless they are built already.
    pub fn build(&self, build: &Build) -> Result<()> {
        time_part(Part::Cargo, || self.build_by(build, || cargo::build(build)))
    }

    /// Like [`Self::build`], but calls `run` to run Cargo.
    fn build_by(&self, build: &Build, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let inputs = format!("{:?} {:?}", build.directory, build.arguments);
        let state = self.state.map(|state| state.with(&inputs));
        let mut programs = build.programs.iter();
        if state.is_some_and(|state| programs.all(|program| state.is_of(program))) {
            return Ok(());
        }
        self.touch_changed()?;
        run()?;
        let programs = build.programs.iter().cloned();
        lock(&self.built).extend(programs.map(|program| (inputs.clone(), program)));
        Ok(())
    }

    /// Touches the changed sources before Cargo runs for the first time.
    fn touch_changed(&self) -> Result<()> {
        let mut known = lock(&self.contents);
        if known.is_none() {
            let contents = Contents::read(self.root)?;
            let touched =
                compiled::touch_changed(&contents, self.root, self.records, self.directories)?;
            *known = Some((contents, touched));
        }
        Ok(())
    }

    /// Records the builds, after each of them has succeeded or failed.
    pub fn write_records(self) -> Result<()> {
        let Some((contents, touched)) = lock(&self.contents).take() else {
            return Ok(());
        };
        compiled::record(&contents, self.root, self.records, touched)?;
        if let (Some(before), Some(now)) = (self.state, read_state(self.root)) {
            for (inputs, program) in lock(&self.built).drain(..) {
                let (before, now) = (before.with(&inputs), now.with(&inputs));
                // Without a record, the next build only asks Cargo again.
                let _ = before.record(now, self.root, &program);
            }
        }
        Ok(())
    }
}

/// Returns the state of the inputs, if it can be read.
fn read_state(root: &Path) -> Option<State> {
    State::read(root, Path::new(toolchain::cargo().get_program())).ok()
}
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
