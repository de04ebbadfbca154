// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remembers from which state of its inputs Cargo last built a program. While the state is the same, Cargo, which takes
//! a tenth of a second, need not be asked.
//!
//! The state has the times of each file. One of them is the time of its last change (ctime), which no program can set.
//! So a file counts as changed even if it is replaced by an older one. Cargo compares the other time only, the time of
//! the content (mtime), so such a file gets a new time before Cargo is asked.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs::{self, File, Metadata};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files and folders of the workspace itself that affect builds.
const OF_WORKSPACE: [&str; 4] = [".cargo", "Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

/// The name of folders with Cargo's output, which are no inputs.
pub const OUTPUT: &str = "target";

/// Variables that a shell sets for each command or folder.
const OF_SHELL: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

/// Longer than a tick of any file system's clock. Two changes within one tick have the same time.
const TICK: Duration = Duration::from_secs(3);

/// A state of everything on which Cargo's result depends: the files of the workspace, Cargo's configuration, its
/// toolchain, and the environment. Dependencies from a registry do not change.
#[derive(Clone, Copy, Debug)]
pub struct State {
    hash: u64,
    /// The latest time of a change, since 1970.
    changed: Duration,
    /// The time at which reading began.
    when: SystemTime,
}

impl State {
    /// Reads the state of the workspace at `root`, which `cargo` builds.
    ///
    /// # Errors
    ///
    /// A file or folder can't be examined, or the path of `cargo` is relative.
    pub fn read(root: &Path, cargo: &Path) -> io::Result<Self> {
        if !cargo.is_absolute() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut state = Self {
            hash: 0,
            changed: Duration::ZERO,
            when: SystemTime::now(),
        };
        for_each_file(root, |path, about| {
            state.add_file(path, about);
            Ok(())
        })?;
        for outside in files_outside(root, cargo) {
            match fs::metadata(&outside) {
                Ok(about) => state.add_file(&outside, &about),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let variables = env::vars_os();
        let variables = variables.filter(|(name, _)| !OF_SHELL.iter().any(|shell| name == shell));
        Ok(variables.fold(state, Self::with))
    }

    fn add_file(&mut self, path: &Path, about: &Metadata) {
        *self = self.with((path.as_os_str(), stamp(about)));
        let seconds = Duration::from_secs(about.ctime().unsigned_abs());
        self.changed = self.changed.max(seconds);
    }

    /// Adds a further input. The order of inputs does not matter.
    #[must_use]
    pub fn with(mut self, input: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self
    }

    /// Whether `program` was built from this state.
    #[must_use]
    pub fn is_of(self, program: &Path) -> bool {
        let recorded = fs::read_to_string(record_of(program)).ok();
        recorded.is_some_and(|recorded| self.line(program).ok() == Some(recorded))
    }

    /// Records that Cargo, which began after this state was read, has built `program` from the workspace at `root`.
    /// `now` is the state after the build. Records nothing if an input may have changed, or is not in the state.
    ///
    /// # Errors
    ///
    /// A file can't be examined, or the record can't be written.
    pub fn record(self, now: Self, root: &Path, program: &Path) -> io::Result<()> {
        let when = self.when.duration_since(UNIX_EPOCH);
        let settled = when.is_ok_and(|when| when > self.changed + TICK);
        let same = self.hash == now.hash;
        let record = record_of(program);
        if !(settled && same && depends_only_on(root, program)? && !refers_elsewhere(root)) {
            return match fs::remove_file(record) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        fs::write(record, self.line(program)?)
    }

    fn line(self, program: &Path) -> io::Result<String> {
        let stamp = stamp(&fs::metadata(program)?);
        Ok(format!("{:016x} {stamp:?}\n", self.hash))
    }
}

fn record_of(program: &Path) -> PathBuf {
    program.with_extension("built")
}

/// The time of a file's content, and of its last change.
fn times(about: &Metadata) -> [(i64, i64); 2] {
    let modified = (about.mtime(), about.mtime_nsec());
    [modified, (about.ctime(), about.ctime_nsec())]
}

/// Returns the identity, the length and the times of a file.
fn stamp(about: &Metadata) -> (u64, u64, [(i64, i64); 2]) {
    (about.ino(), about.len(), times(about))
}

/// Returns the files and folders of the workspace at `root` that affect builds. Those of the packages are the first
/// parts of the members' paths.
///
/// # Errors
///
/// The workspace's manifest can't be read.
pub fn inputs_of(root: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let list = manifest.split_once("\nmembers = [");
    let list = list.and_then(|(_, rest)| rest.split_once(']'));
    let members = list
        .map_or("", |(list, _)| list)
        .split('"')
        .skip(1)
        .step_by(2);
    let rooms = members.filter_map(|member| member.split('/').next());
    Ok(rooms
        .chain(OF_WORKSPACE)
        .map(|name| root.join(name))
        .collect())
}

/// Calls `visit` with each file and folder of the workspace at `root` that affects builds. The times of a folder change
/// if a file in it appears or disappears. A symbolic link counts with its target, if it has one.
fn for_each_file(
    root: &Path,
    mut visit: impl FnMut(&Path, &Metadata) -> io::Result<()>,
) -> io::Result<()> {
    let mut paths = Vec::from_iter(inputs_of(root)?);
    while let Some(path) = paths.pop() {
        let about = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() && path.ends_with(OUTPUT) {
            continue;
        }
        if about.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
        }
        match about.is_symlink() {
            true => visit(&path, &fs::metadata(&path).unwrap_or(about))?,
            false => visit(&path, &about)?,
        }
    }
    Ok(())
}

/// Gives a new time to each file that has changed since `program` was built, but has an older time.
pub fn touch_disguised(root: &Path, program: &Path) -> io::Result<()> {
    let [built, _] = times(&fs::metadata(program)?);
    for_each_file(root, |path, about| {
        let [modified, changed] = times(about);
        if about.is_file() && modified <= built && changed > built {
            File::open(path)?.set_modified(SystemTime::now())?;
        }
        Ok(())
    })
}

/// Returns the files outside the workspace on which a build depends: Cargo's configuration (The Cargo Book,
/// Configuration), Cargo, and each compiler that Cargo may run.
fn files_outside(root: &Path, cargo: &Path) -> Vec<PathBuf> {
    let mut files = configuration(root.ancestors().skip(1));
    files.extend([cargo.to_owned(), cargo.with_file_name("rustc")]);
    files.extend(env::var_os("RUSTC").map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    files.extend(
        env::split_paths(&path)
            .map(|folder| folder.join("rustc"))
            .find(|rustc| rustc.is_file()),
    );
    files
}

/// Returns the files of Cargo's configuration in `folders`, and in Cargo's own folder.
fn configuration<'f>(folders: impl Iterator<Item = &'f Path>) -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
    let folders = folders.map(|folder| folder.join(".cargo")).chain(home);
    folders
        .flat_map(|folder| ["config", "config.toml"].map(|name| folder.join(name)))
        .collect()
}

/// Whether a program depends only on files of the workspace at `root`, and on dependencies from a registry, which Cargo
/// does not list (The Cargo Book, Build Cache, Dep-info files).
fn depends_only_on(root: &Path, program: &Path) -> io::Result<bool> {
    let text = fs::read_to_string(program.with_extension("d"))?;
    // A space in a path is escaped.
    let text = text.replace("\\ ", "\0");
    let files = text.split_whitespace().skip(1);
    let mut files = files.map(|file| fs::canonicalize(root.join(file.replace('\0', " "))));
    let inputs = inputs_of(&root.canonicalize()?)?;
    let is_below = |file: &Path, input: &Path| {
        let rest = file.strip_prefix(input);
        rest.is_ok_and(|rest| rest.iter().all(|part| part != OUTPUT))
    };
    let is_input = |file: PathBuf| inputs.iter().any(|input| is_below(&file, input));
    Ok(files.all(|file| file.is_ok_and(is_input)))
}

/// Whether Cargo's configuration may include further files, or may name another compiler.
fn refers_elsewhere(root: &Path) -> bool {
    let refers = |text: &str| text.contains("include") || text.contains("rustc");
    let files = configuration(root.ancestors());
    let mut texts = files.iter().map(fs::read_to_string);
    texts.any(|text| text.is_ok_and(|text| refers(&text)))
        || ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
            .iter()
            .any(|name| env::var_os(name).is_some())
}

#[cfg(test)]
mod tests;
