// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remembers from which state of its inputs Cargo last built a program. While the state is the same, there is no need to
//! ask Cargo, which takes a tenth of a second.
//!
//! The state has the times of each file, which include the time of its last change (ctime), which no program can set. So
//! a file that is replaced by an older one counts as changed.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Variables that a shell sets for each command or folder.
const OF_SHELL: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

/// Longer than a tick of any file system's clock. Two changes within one tick have the same time.
const TICK: Duration = Duration::from_secs(1);

/// A state of everything on which Cargo's result depends: the files of the workspace, Cargo's configuration, its
/// toolchain, and the environment. Dependencies from a registry do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    hash: u64,
    /// The latest time of a change, since 1970.
    changed: Duration,
}

impl State {
    /// Reads the state of the workspace at `root`, which `cargo` builds.
    pub fn read(root: &Path, cargo: &Path) -> io::Result<Self> {
        let mut state = Self {
            hash: 0,
            changed: Duration::ZERO,
        };
        let apart = ["target", ".git"].map(|name| root.join(name));
        state.add_below(root, &apart)?;
        for outside in files_outside(root, cargo) {
            match fs::metadata(&outside) {
                Ok(about) => state.add_file(&outside, &about),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for (name, value) in env::vars_os() {
            if !OF_SHELL.iter().any(|of_shell| name == *of_shell) {
                state.add((name, value));
            }
        }
        Ok(state)
    }

    /// Adds all files below `folder`, except those in the folders `apart`.
    fn add_below(&mut self, folder: &Path, apart: &[PathBuf]) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                self.add_file(&path, &entry.metadata()?);
            } else if !apart.contains(&path) {
                self.add_below(&path, apart)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, about: &fs::Metadata) {
        self.add((path.as_os_str(), stamp(about)));
        let seconds = Duration::from_secs(about.ctime().unsigned_abs());
        self.changed = self.changed.max(seconds);
    }

    /// Adds a part, in any order.
    fn add(&mut self, part: impl Hash) {
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

/// Returns the identity and the times of a file.
fn stamp(about: &fs::Metadata) -> [i64; 6] {
    let (number, length) = (about.ino().cast_signed(), about.len().cast_signed());
    let modified = [about.mtime(), about.mtime_nsec()];
    let changed = [about.ctime(), about.ctime_nsec()];
    [
        number,
        length,
        modified[0],
        modified[1],
        changed[0],
        changed[1],
    ]
}

/// Returns the files outside the workspace on which a build depends: Cargo's configuration (The Cargo Book,
/// Configuration), Cargo, and the compiler next to it.
fn files_outside(root: &Path, cargo: &Path) -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
    let parents = root.ancestors().skip(1).map(|parent| parent.join(".cargo"));
    let configuration = parents.chain(home);
    let files =
        configuration.flat_map(|folder| ["config", "config.toml"].map(|name| folder.join(name)));
    files
        .chain([cargo.to_owned(), cargo.with_file_name("rustc")])
        .collect()
}

/// Whether `program` is the file that was built from `state`.
pub fn is_built(program: &Path, state: State) -> bool {
    let recorded = fs::read_to_string(record_of(program)).ok();
    recorded.is_some_and(|recorded| line(program, state).ok() == Some(recorded))
}

/// Records, at the time `now`, that Cargo, which began after `state` was read, has built `program`. Records nothing if an
/// input may be changing, or is not in the state.
pub fn record(
    root: &Path,
    cargo: &Path,
    program: &Path,
    state: State,
    now: SystemTime,
) -> io::Result<()> {
    let now = now.duration_since(UNIX_EPOCH);
    let settled = now.is_ok_and(|now| now > state.changed + TICK + TICK);
    let same = State::read(root, cargo)? == state;
    let record = record_of(program);
    if !(settled && same && depends_only_on(root, program)? && !includes(root, cargo)) {
        return match fs::remove_file(record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    fs::write(record, line(program, state)?)
}

fn record_of(program: &Path) -> PathBuf {
    program.with_extension("built")
}

fn line(program: &Path, state: State) -> io::Result<String> {
    let stamp = stamp(&fs::metadata(program)?);
    Ok(format!("{:016x} {stamp:?}\n", state.hash))
}

/// Whether a program depends only on files below `root`, and on dependencies from a registry, which Cargo does not list
/// (The Cargo Book, Build Cache, Dep-info files).
fn depends_only_on(root: &Path, program: &Path) -> io::Result<bool> {
    let text = fs::read_to_string(program.with_extension("d"))?;
    // A space in a path is escaped.
    let text = text.replace("\\ ", "\0");
    let files = text.split_whitespace().skip(1);
    let root = root.as_os_str().to_string_lossy().replace(' ', "\0");
    let mut files = files.map(Path::new);
    Ok(files.all(|file| file.starts_with(&root)))
}

/// Whether Cargo's configuration may include further files.
fn includes(root: &Path, cargo: &Path) -> bool {
    let outside = files_outside(root, cargo);
    let configuration = outside
        .iter()
        .filter(|file| file.file_stem() == Some(OsStr::new("config")));
    let inside = root.join(".cargo/config.toml");
    configuration
        .chain([&inside])
        .any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("include")))
}

#[cfg(test)]
mod tests;
