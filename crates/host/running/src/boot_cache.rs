// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reuses the outcomes of boots that must repeat an earlier boot exactly: boots for tests, and boots for comparing two
//! kernels.
//!
//! In instruction mode, one thread of the emulator runs all CPUs in turn, and each instruction takes a nanosecond
//! of the machine's time (QEMU: docs/devel/tcg-icount.rst). No input comes from outside: `launch.rs` fixes the
//! machine's random numbers and its date. So the output of a machine depends only on the emulator, its command, and the
//! contents of the files that the command names; `suite/jobs.rs` has the rare exception.
//!
//! The output of a test's machine is kept below `target/tests/boots` until the test fails. While the emulator, the
//! command and the contents are unchanged, the machine is not booted, and the kept output is judged again. So a change
//! to this program causes no boot, while a change to the hypervisor or to a guest causes all boots that run it.
//!
//! Two kernels are usually compared again and again while only one of them changes. The boots of the unchanged kernel
//! are kept below `target/boots`, for [`KEPT`].
//!
//! Boots that this program stopped, or that ended abnormally, are not kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use providing::qemu::Shutdown;
use shell::digest::xxh3_hex;
use shell::emulator_process::OutputLine;
use shell::once::Once;
use shell::{partial_files, places};

/// The file with the output of a boot.
const SAID: &str = "said.json";

/// Output and end of a boot that ended by itself.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootOutcome {
    /// All lines, in the order in which they arrived.
    pub lines: Vec<OutputLine>,
    /// How the machine ended, by the emulator's report.
    pub report: Option<Shutdown>,
}

impl BootOutcome {
    /// Returns the console's output.
    pub fn console(&self) -> String {
        let lines = self.lines.iter().filter_map(|line| match line {
            OutputLine::Console(line) => Some(line.as_str()),
            OutputLine::Emulator(_) => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// How long the boots of compared kernels are kept.
pub const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// The boots of a test, or of compared kernels.
#[derive(Debug)]
pub struct BootCache {
    folder: PathBuf,
    /// Whether to make all boots, even those whose outcome is kept.
    again: bool,
    /// The numbers and the names of boots in this run.
    of_now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    boots: usize,
    as_before: usize,
    names: BTreeSet<String>,
}

impl BootCache {
    /// Runs the test `name`. If `again` is true, makes even the boots whose outcome is kept. Returns the test's result
    /// and, for people, the number of reused boots, if any.
    pub fn of_test<T>(
        name: &str,
        again: bool,
        test: impl FnOnce(&Arc<Self>) -> Result<T>,
    ) -> Result<(T, Option<String>)> {
        let boots = places::target().join("tests").join("boots");
        let before = Arc::new(Self::in_folder(&boots, name, again));
        match test(&before) {
            Ok(came) => Ok((came, before.prune_after_pass())),
            Err(error) => {
                before.forget_all()?;
                Err(error)
            }
        }
    }

    /// Returns the boots of compared kernels, after removing boots that are older than [`KEPT`]. If `again` is true,
    /// even the boots whose outcome is kept are made again.
    pub fn of_kernels(again: bool) -> Arc<Self> {
        let before = Self::in_folder(&places::target(), "boots", again);
        before.remove_old(SystemTime::now());
        Arc::new(before)
    }

    /// Removes the boots that are older than [`KEPT`] at `now`.
    fn remove_old(&self, now: SystemTime) {
        let old = |made| now.duration_since(made).is_ok_and(|age| age > KEPT);
        self.remove(|entry| {
            let made = entry.metadata().and_then(|data| data.modified());
            made.is_ok_and(old)
        });
    }

    /// Returns how many boots were reused, and how many there were in all. `None` if no boot was reused.
    pub fn reused(&self) -> Option<(usize, usize)> {
        let now = self.lock_now();
        (now.as_before > 0).then_some((now.as_before, now.boots))
    }

    fn in_folder(boots: &Path, name: &str, again: bool) -> Self {
        Self {
            folder: boots.join(name),
            again,
            of_now: Mutex::default(),
        }
    }

    /// Returns the boot that `command` starts. `emulator` is the emulator's version text. `place` is the folder for the
    /// emulator's files. `files` are the recorder's files, by the names of its options: the recorder reads the files
    /// that exist, and writes the others.
    pub fn boot(
        &self,
        emulator: &str,
        command: &Command,
        place: &Path,
        files: &[(&'static str, &Path)],
    ) -> Result<Boot<'_>> {
        let files = files.iter();
        let (read, written): (Vec<_>, Vec<_>) = files.partition(|(_, path)| path.exists());
        Ok(Boot {
            name: cache_key(emulator, command, place, &read, &written)?,
            before: self,
            written: written
                .into_iter()
                .map(|(name, path)| (*name, path.to_path_buf()))
                .collect(),
        })
    }

    /// After the test has passed, removes the kept boots that it neither made nor reused. Returns, for people, the
    /// number of reused boots, if any.
    fn prune_after_pass(&self) -> Option<String> {
        let now = self.lock_now();
        self.remove(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // A name with a dot belongs to a boot that another run is making.
            !name.contains('.') && !now.names.contains(&*name)
        });
        drop(now);
        let (reused, boots) = self.reused()?;
        Some(format!("{reused} of {boots} boots as before"))
    }

    /// Removes the boots that are `unwanted`.
    fn remove(&self, unwanted: impl Fn(&fs::DirEntry) -> bool) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(unwanted) {
            // The next run removes the remains.
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    /// After the test has failed, removes all its kept boots, so that its next run boots everything.
    fn forget_all(&self) -> Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| places::shown(&self.folder))
            }
            _ => Ok(()),
        }
    }

    /// Locks the data of this run. Ignores poisoning, because a panic in a test ends the program, so nothing reads
    /// what it left.
    fn lock_now(&self) -> MutexGuard<'_, Now> {
        self.of_now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A boot of a test, or of a compared kernel.
#[derive(Debug)]
pub struct Boot<'b> {
    before: &'b BootCache,
    /// The cache key.
    name: String,
    /// Files that a recorder writes, by the names of its options.
    written: Vec<(&'static str, PathBuf)>,
}

impl Boot<'_> {
    /// Returns the kept outcome of the boot, if there is one, after copying the kept files of the recorder to their
    /// paths. If a test makes the same boot twice in order to compare the outcomes, the second boot is made as well.
    pub fn went(&self) -> Option<BootOutcome> {
        let mut now = self.before.lock_now();
        now.boots += 1;
        let first = now.names.insert(self.name.clone());
        drop(now);
        if self.before.again || !first {
            return None;
        }
        let folder = self.folder();
        let said = fs::read(folder.join(SAID)).ok()?;
        let went = serde_json::from_slice(&said).ok()?;
        for (name, path) in &self.written {
            // A recorder that ended early has written nothing.
            if folder.join(name).exists() {
                fs::copy(folder.join(name), path).ok()?;
            }
        }
        self.before.lock_now().as_before += 1;
        Some(went)
    }

    /// Keeps the boot's outcome.
    pub fn keep(&self, went: &BootOutcome) -> Result<()> {
        let parent = &self.before.folder;
        let shown = || places::shown(parent);
        fs::create_dir_all(parent).with_context(shown)?;
        partial_files::sweep(parent);
        // Another run of this test may be keeping this boot now, or may have kept it already.
        let Some(folder) = partial_files::Folder::claim(parent, &self.name).with_context(shown)?
        else {
            return Ok(());
        };
        fs::write(folder.path().join(SAID), serde_json::to_vec(went)?).with_context(shown)?;
        for (name, path) in &self.written {
            if path.exists() {
                fs::copy(path, folder.path().join(name)).with_context(|| places::shown(path))?;
            }
        }
        // A damaged or unused folder may be in the way.
        let to = self.folder();
        let _ = fs::remove_dir_all(&to);
        drop(folder.rename(&to));
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.before.folder.join(&self.name)
    }
}

/// Returns a boot's cache key. The key is a hash over the emulator's version text, the command with each path replaced
/// by the file's contents, the recorder's input, and the names of the recorder's output files. The names count because
/// a boot that wrote no traces can't provide any. The version text counts because the program that the command names
/// may be a script that starts the emulator.
fn cache_key(
    emulator: &str,
    command: &Command,
    place: &Path,
    read: &[&(&str, &Path)],
    written: &[&(&str, &Path)],
) -> Result<String> {
    let place = place.to_string_lossy();
    let mut depends = format!("{emulator}\n");
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word = with_contents(&word.to_string_lossy())?;
        // The name of a scratch folder differs each time.
        depends += &format!("{}\n", word.replace(&*place, "PLACE"));
    }
    for (name, path) in read {
        depends += &format!("{name}={}\n", file_hash(path)?);
    }
    for (name, _) in written {
        depends += &format!("{name}\n");
    }
    Ok(xxh3_hex(depends.as_bytes()))
}

/// Replaces each path of a file in a word of a command with the hash of the file's contents. A path is either the whole
/// word, or a value in a list of options, in which commas are doubled.
fn with_contents(word: &str) -> Result<String> {
    if Path::new(word).is_file() {
        return Ok(file_hash(Path::new(word))?.to_string());
    }
    let word = word.replace(",,", "\0");
    let parts = word.split(',').map(|part| {
        let (name, value) = part.split_once('=').unwrap_or(("", part));
        let path = value.replace('\0', ",");
        if !Path::new(&path).is_file() {
            return Ok(part.to_owned());
        }
        Ok(format!("{name}={}", file_hash(Path::new(&path))?))
    });
    Ok(parts.collect::<Result<Vec<_>>>()?.join(","))
}

/// Returns the hash of a file's contents. Hashes are cached, because each command names the emulator's file.
fn file_hash(path: &Path) -> Result<Arc<String>> {
    static SUMS: Once<(PathBuf, u64, SystemTime), String> = Once::new();
    let shown = || places::shown(path);
    let data = fs::metadata(path).with_context(shown)?;
    let modified = data.modified().with_context(shown)?;
    SUMS.get((path.to_owned(), data.len(), modified), || {
        Ok(xxh3_hex(&fs::read(path).with_context(shown)?))
    })
}

#[cfg(test)]
mod tests;
