// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether Cargo would have anything to build.
//!
//! Cargo needs more than a tenth of a second to find that nothing has changed, and a command asks it again and again. So what a
//! build depended on is written down behind it: the words of its command, what of the environment Cargo heeds, and the
//! time and length of each file. While all of that is the same there is nothing to build. Cargo itself compares times
//! (the documentation of its module `core::compiler::fingerprint`); it takes a source that is older than the program for unchanged, and this takes only one with
//! the very same time and length.
//!
//! Which files those are says the file `PROGRAM.d` that Cargo writes beside a program: all sources of all packages of the workspace
//! that are in it. Their manifests, and files of settings, are added, those too that are not there and would be heeded if they were.
//! Dependencies come from registries: what they are is in `Cargo.lock`.

#![forbid(unsafe_code)]

mod files;
mod inputs;

pub use inputs::{cargo, home};

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

/// Variables that change what Cargo builds begin with one of these (The Cargo Book, Environment Variables).
const HEEDED: [&str; 10] = [
    "RUSTC",
    "RUSTFLAGS",
    "RUSTUP_",
    "CARGO_BUILD_",
    "CARGO_ENCODED_",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CARGO_UNSTABLE_",
];

/// A build of some programs.
#[derive(Debug)]
pub struct Build {
    /// The workspace's folder.
    root: PathBuf,
    /// What is written down.
    stamp: PathBuf,
    /// What it is built with, one word a line.
    words: String,
    programs: Vec<PathBuf>,
}

/// A build that has begun.
#[derive(Debug)]
struct Begun<'a> {
    build: &'a Build,
    /// By the clock of the file system.
    at: SystemTime,
}

impl Build {
    /// The build of `programs` in the workspace `root` by the command that `words` are. `folder` is where it is written down.
    #[must_use]
    pub fn new<W: AsRef<OsStr>>(
        root: &Path,
        folder: &Path,
        words: impl IntoIterator<Item = W>,
        programs: Vec<PathBuf>,
    ) -> Self {
        let mut text = String::new();
        let mut line = |word: &OsStr| {
            // Writing to a string can't fail.
            let _ = writeln!(text, "word {word:?}");
        };
        words.into_iter().for_each(|word| line(word.as_ref()));
        let mut environment: Vec<(OsString, OsString)> = env::vars_os().collect();
        environment.retain(|(name, _)| is_heeded(name));
        environment.sort();
        for (name, value) in environment {
            line(&name);
            line(&value);
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        programs.hash(&mut hasher);
        Self {
            root: root.to_owned(),
            stamp: folder.join(format!("fresh-{:016x}", hasher.finish())),
            words: text,
            programs,
        }
    }

    /// Whether there is nothing to build.
    fn is_fresh(&self) -> bool {
        let Ok(text) = fs::read_to_string(&self.stamp) else {
            return false;
        };
        let files = text.strip_prefix(&self.words);
        files.is_some_and(|files| !files.is_empty() && files.lines().all(files::is_as_it_was))
    }

    /// Has it built by `build`, which answers whether it could, unless there is nothing to build. Answers whether the programs are there.
    ///
    /// # Errors
    ///
    /// Those of `build`.
    pub fn unless_fresh<E>(&self, build: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        if self.is_fresh() {
            return Ok(true);
        }
        // Where nothing can be written down Cargo is asked each time.
        let begun = self.begin().ok();
        let well = build()?;
        if let Some(begun) = begun.filter(|_| well) {
            begun.keep();
        }
        Ok(well)
    }

    /// Begins it: what was written down is forgotten.
    fn begin(&self) -> io::Result<Begun<'_>> {
        match fs::remove_file(&self.stamp) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(folder) = self.stamp.parent() {
            fs::create_dir_all(folder)?;
        }
        let clock = self.beside("clock");
        fs::write(&clock, "")?;
        let at = fs::metadata(&clock).and_then(|about| about.modified());
        fs::remove_file(&clock)?;
        Ok(Begun {
            build: self,
            at: at?,
        })
    }

    /// A file of this process alone.
    fn beside(&self, what: &str) -> PathBuf {
        self.stamp
            .with_extension(format!("{}.{what}", process::id()))
    }
}

impl Begun<'_> {
    /// It has ended well: writes down what it depended on, and answers whether it could. Nothing is written if a file may have changed since it
    /// began: that may have been before or after it was compiled.
    fn keep(self) -> bool {
        self.lines().is_some_and(|lines| {
            let new = self.build.beside("new");
            let written = fs::write(&new, self.build.words.clone() + &lines);
            written
                .and_then(|()| fs::rename(&new, &self.build.stamp))
                .is_ok()
        })
    }

    fn lines(&self) -> Option<String> {
        let mut text = String::new();
        for input in inputs::of(&self.build.root, &self.build.programs)? {
            let about = files::line(&input)?;
            if about.changed.is_some_and(|time| time >= self.at) {
                return None;
            }
            text += &about.text;
        }
        for program in &self.build.programs {
            let about = files::line(program)?;
            about.changed?;
            text += &about.text;
        }
        Some(text)
    }
}

fn is_heeded(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    HEEDED.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests;
