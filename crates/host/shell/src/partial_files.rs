// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files and folders that are being written next to their final place, and a program's temporary files.
//!
//! The names of these files and folders show that they are partial. Each is locked for as long as the process that
//! makes it, the maker, is alive. The kernel releases the lock however the maker ends. So the next run can tell the
//! remains of a killed run from the files of another run, without guessing by age. The next run removes the remains, or
//! gives them a name if they contain a machine's console ([`mod@sweep`]).
//!
//! A process that removes remains, a sweeper, may find a file after the maker has created its name and before the maker
//! has the lock. The sweeper removes only files that it has locked. The maker, once it has the lock, checks whether the
//! name still leads to its file, and otherwise makes another file.

mod lock;
mod sweep;

pub use sweep::sweep;

use std::env;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::failure::bad_input;
use crate::{files, places};
use lock::{ignore_unsupported, is_still, lock};

/// Prefix and suffix of the names.
const PREFIX: &str = ".rouse.";
const SUFFIX: &str = ".partial";
/// The variable that names the folder for temporary files.
const TMPDIR: &str = "TMPDIR";
/// Longest path, in bytes, of a folder for sockets. Some systems limit a socket's path to 104 bytes, including the
/// terminating zero.
const SHORT: usize = 70;
/// Permissions of a new file, before the umask.
const FILE_MODE: u32 = 0o666;

/// A folder that is removed unless it gets its final name.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    lock: Option<File>,
}

impl Folder {
    /// Begins the folder `name` in `parent`. `None` if another run is making it.
    pub fn claim(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = parent.join(format!("{PREFIX}{name}{SUFFIX}"));
        loop {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
                made => made?,
            }
            if let Some(lock) = lock(&path)? {
                let lock = Some(lock);
                return Ok(Some(Self { path, lock }));
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder its final name.
    pub fn rename(mut self, to: &Path) -> std::result::Result<(), (Self, io::Error)> {
        match fs::rename(&self.path, to) {
            Ok(()) => {
                self.lock = None;
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }

    /// Keeps the folder as it is, for the next run to name or remove.
    pub fn keep_for_next_run(mut self) -> PathBuf {
        self.lock = None;
        std::mem::take(&mut self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // The next run removes the remains.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A temporary folder.
#[derive(Debug)]
pub struct Scratch {
    place: TempDir,
    _lock: File,
}

impl Scratch {
    /// Creates a temporary folder in the system's folder for temporary files.
    pub fn new() -> Result<Self> {
        let parent = scratch_in(&env::temp_dir())?;
        sweep(&parent);
        let begin = || {
            let mut builder = Builder::new();
            builder.prefix(PREFIX).suffix(SUFFIX);
            loop {
                let place = builder.tempdir_in(&parent)?;
                if let Some(_lock) = lock(place.path())? {
                    return Ok(Self { place, _lock });
                }
            }
        };
        begin().map_err(|error| files::refused(&parent, "written", &error).context(TMPDIR))
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

/// Returns the parent of temporary folders. Sockets in temporary folders must have short paths (unix(7)). The folders'
/// paths also appear in QEMU's options, where a comma separates values. A `named` folder whose path is unsuitable is
/// not used.
fn scratch_in(named: &Path) -> Result<PathBuf> {
    if !named.is_dir() {
        bad_input!(
            "{TMPDIR}: {} is not a folder; name one, or unset it",
            places::shown(named)
        );
    }
    let named = std::path::absolute(named)?;
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let candidates = [Some(named), runtime, Some("/tmp".into())];
    let mut candidates = candidates.into_iter().flatten();
    let fits = |path: &PathBuf| {
        let bytes = path.as_os_str().as_bytes();
        bytes.len() <= SHORT && !bytes.contains(&b',') && path.is_dir()
    };
    match candidates.find(fits) {
        Some(fits) => Ok(fits),
        None => bad_input!(
            "{TMPDIR}: sockets of QEMU need a folder whose path has at most {SHORT} characters and no comma; name one"
        ),
    }
}

/// Creates a file in `parent`, which is removed unless it gets another name. The umask decides which
/// users may read it.
pub fn file(parent: &Path) -> io::Result<NamedTempFile> {
    sweep(parent);
    loop {
        let file = Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(FILE_MODE))
            .tempfile_in(parent)?;
        ignore_unsupported(file.as_file().lock())?;
        if is_still(file.as_file(), file.path()) {
            return Ok(file);
        }
    }
}

/// Writes the file `path` whole, or not at all, with permissions `mode`.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let file = file(path.parent().unwrap_or(path))?;
    fs::write(file.path(), bytes)?;
    fs::set_permissions(file.path(), Permissions::from_mode(mode))?;
    file.persist(path)?;
    Ok(())
}

/// A folder of finished files that runs share, locked while a run needs it.
#[derive(Debug)]
pub struct Shared {
    _lock: File,
}

impl Shared {
    /// Locks the folder at `path`. `None` if it does not exist or is being removed.
    pub fn lock(path: &Path) -> Option<Self> {
        let _lock = File::open(path).ok()?;
        match _lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => None,
            _ => is_still(&_lock, path).then_some(Self { _lock }),
        }
    }

    /// Removes the folder at `path` unless a process holds it. The folder disappears at once, because it first gets the
    /// name of a partial folder.
    pub fn remove_unless_held(path: &Path) {
        let Ok(file) = File::open(path) else { return };
        if file.try_lock().is_err() || !is_still(&file, path) {
            return;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let gone = path.with_file_name(format!("{PREFIX}{name}.old{SUFFIX}"));
        if fs::rename(path, &gone).is_ok() {
            // The next run removes the remains.
            let _ = fs::remove_dir_all(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_has_left_is_removed_and_what_another_is_at_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let running = Folder::claim(parent.path(), "running").unwrap().unwrap();
        let writing = file(parent.path()).unwrap();
        // A killed run has left these: the names exist, the locks do not.
        fs::create_dir_all(at(".rouse.killed.partial/deep")).unwrap();
        fs::write(at(".rouse.killed.partial/serial.log"), "").unwrap();
        fs::write(at(".rouse.abc.partial"), "x").unwrap();
        // These files belong to other programs.
        fs::write(at(".rouse.notes"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", at(".rouse.link.partial")).unwrap();
        sweep(parent.path());
        assert!(!at(".rouse.killed.partial").exists());
        assert!(!at(".rouse.abc.partial").exists());
        assert!(at(".rouse.notes").exists() && at(".rouse.link.partial").exists());
        assert!(running.path().exists() && writing.path().exists());
    }

    #[test]
    fn scratch_is_where_sockets_can_be() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let good = make("a b");
        assert_eq!(scratch_in(&good).unwrap(), good);
        // Neither folder can hold sockets, so another folder is used. This is not an error.
        for bad in ["a,b", &"x".repeat(200)] {
            let other = scratch_in(&make(bad)).unwrap();
            assert!(other.is_dir() && !other.starts_with(parent.path()), "{bad}");
        }
        let error = scratch_in(&parent.path().join("missing")).unwrap_err();
        assert!(crate::failure::is_bad_input(&error), "{error}");
        assert!(error.to_string().starts_with("TMPDIR: "), "{error}");
    }

    #[test]
    fn what_a_killed_run_has_measured_gets_a_name() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let log = |folder: &str| {
            fs::create_dir_all(at(folder)).unwrap();
            fs::write(at(folder).join("serial.log"), "@r1 0 boot #0\n").unwrap();
        };
        let running = Folder::claim(parent.path(), "running").unwrap().unwrap();
        fs::write(running.path().join("serial.log"), "@r1 0 boot #0\n").unwrap();
        log(".rouse.a.partial");
        log("a-killed");
        log(".rouse.b.partial/.rouse.part.partial");
        // There may be any number of sweepers, at once and one after another.
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| (0..3).for_each(|_| sweep(parent.path())));
            }
        });
        for kept in ["a-killed", "a-killed-2", "b-killed/part-killed"] {
            assert!(at(kept).join("serial.log").exists(), "{kept}");
        }
        assert!(running.path().join("serial.log").exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_name_belongs_to_one_maker() {
        let parent = tempfile::tempdir().unwrap();
        let first = Folder::claim(parent.path(), "x").unwrap().unwrap();
        assert!(Folder::claim(parent.path(), "x").unwrap().is_none());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
        assert!(Folder::claim(parent.path(), "x").unwrap().is_some());
    }

    #[test]
    fn makers_and_sweepers_do_not_lose_anything() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| (0..200).for_each(|_| sweep(parent.path())));
            }
            for maker in 0..2 {
                let parent = parent.path();
                threads.spawn(move || {
                    for number in 0..200 {
                        let name = format!("{maker}-{number}");
                        let folder = Folder::claim(parent, &name).unwrap().unwrap();
                        fs::write(folder.path().join("x"), "y").unwrap();
                        folder.rename(&parent.join(name)).unwrap();
                    }
                });
            }
        });
        let complete = fs::read_dir(parent.path()).unwrap().flatten();
        let complete = complete.filter(|entry| entry.path().join("x").exists());
        assert_eq!(complete.count(), 400);
    }

    #[test]
    fn what_is_held_stays() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("shared");
        assert!(Shared::lock(&path).is_none());
        fs::create_dir(&path).unwrap();
        let (one, other) = (Shared::lock(&path).unwrap(), Shared::lock(&path).unwrap());
        drop(one);
        Shared::remove_unless_held(&path);
        assert!(path.exists());
        drop(other);
        Shared::remove_unless_held(&path);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
