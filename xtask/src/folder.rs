// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder that a run leaves: complete under its name, or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::failure::bad_input;
use crate::places;

/// What a file is written or left out by.
const BLOCK: usize = 4096;

/// A folder in the making, beside the place where it will be.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    partial: TempDir,
}

impl Folder {
    /// Claims `out`, which must be new or empty; without it a name is made of
    /// the time and the board.
    pub fn claim(out: Option<&Path>, board: &str) -> Result<Self> {
        let target = match out {
            Some(out) => std::path::absolute(out).unwrap_or_else(|_| out.into()),
            None => fresh(board),
        };
        let shown = places::shown(&target);
        if is_taken(&target) {
            bad_input!("--out: {shown} exists and is not an empty folder; name another one");
        }
        let parent = target.parent().unwrap_or(Path::new("/"));
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let partial = fs::create_dir_all(parent).and_then(|()| {
            Builder::new()
                .prefix(&format!(".{name}."))
                .tempdir_in(parent)
        });
        match partial {
            Ok(partial) => Ok(Self { target, partial }),
            Err(error) => {
                bad_input!("--out: {shown} can't be created ({error}); name a folder that can")
            }
        }
    }

    /// Where the folder will be, for people.
    pub fn shown(&self) -> String {
        places::shown(&self.target)
    }

    /// Its name.
    pub fn name(&self) -> String {
        let name = self.target.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// A place in it, for a folder of its own.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.partial.path().join(name)
    }

    /// A new file in it.
    pub fn create(&self, name: &str) -> Result<File> {
        let path = self.partial.path().join(name);
        File::create(&path).with_context(|| format!("{} can't be written", path.display()))
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let written = self.create(name)?.write_all(text.as_bytes());
        written.with_context(|| format!("{name} can't be written; is the disk full?"))
    }

    /// Reads a file in it, whatever bytes it has.
    pub fn read(&self, name: &str) -> Result<String> {
        let bytes = fs::read(self.partial.path().join(name)).with_context(|| name.to_owned())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Puts the folder where it belongs.
    pub fn publish(self) -> Result<PathBuf> {
        let partial = self.partial.keep();
        make_readable(&partial)?;
        // Renaming replaces a folder that is empty and fails on one that no
        // longer is.
        fs::rename(&partial, &self.target).with_context(|| {
            format!(
                "{} can't be put in place; it is in {}",
                places::shown(&self.target),
                partial.display()
            )
        })?;
        Ok(self.target)
    }
}

/// Temporary folders are private; results are not.
fn make_readable(folder: &Path) -> Result<()> {
    let context = || folder.display().to_string();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).with_context(context)
}

fn is_taken(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

/// A name that does not exist yet.
fn fresh(board: &str) -> PathBuf {
    let time = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let runs = places::target().join("runs");
    let numbered = (2..).map(|number| format!("{time}-{board}-{number}"));
    let mut names = std::iter::once(format!("{time}-{board}")).chain(numbered);
    let free = names.find(|name| !runs.join(name).exists());
    runs.join(free.unwrap_or(time))
}

/// A file that appears with its full contents, and which is known to be
/// writable before there are any.
#[derive(Debug)]
pub struct Copy {
    target: PathBuf,
    partial: NamedTempFile,
}

impl Copy {
    /// Claims the file.
    pub fn claim(option: &str, target: &Path) -> Result<Self> {
        let parent = target
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let shown = target.display();
        if target.is_dir() {
            bad_input!("{option}: {shown} is a folder; name a file");
        }
        match Builder::new()
            .prefix(".rouse.")
            .tempfile_in(parent.unwrap_or(Path::new(".")))
        {
            Ok(partial) => Ok(Self {
                target: target.into(),
                partial,
            }),
            Err(error) => {
                bad_input!("{option}: {shown} can't be written ({error}); name another file")
            }
        }
    }

    /// Writes text.
    pub fn write(self, text: &str) -> Result<()> {
        self.write_bytes(text.as_bytes())
    }

    /// Writes bytes. Blocks of zeroes take no space where the file system knows how.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<()> {
        let context = || format!("{} can't be written", self.target.display());
        write_sparse(self.partial.as_file(), bytes).with_context(context)?;
        // Temporary files are private; results are not.
        let file = self.partial.as_file();
        let readable = file.set_permissions(fs::Permissions::from_mode(0o644));
        readable.with_context(context)?;
        let kept = self.partial.persist(&self.target);
        kept.map(drop)
            .with_context(|| format!("{} can't be written", self.target.display()))
    }
}

/// Writes `bytes` to an empty file, leaving holes in place of blocks of zeroes.
fn write_sparse(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(bytes.len() as u64)?;
    for (index, block) in bytes.chunks(BLOCK).enumerate() {
        if block.iter().any(|&byte| byte != 0) {
            file.write_all_at(block, (index * BLOCK) as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::is_bad_input;

    #[test]
    fn a_folder_appears_complete_or_not_at_all() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("a/b");
        drop(Folder::claim(Some(&out), "virt").unwrap());
        assert_eq!(fs::read_dir(parent.path().join("a")).unwrap().count(), 0);
        let folder = Folder::claim(Some(&out), "virt").unwrap();
        folder.write("x", "y").unwrap();
        assert!(!out.exists());
        assert_eq!(folder.publish().unwrap(), out);
        assert_eq!(fs::read_to_string(out.join("x")).unwrap(), "y");
        let again = Folder::claim(Some(&out), "virt").unwrap_err();
        assert!(is_bad_input(&again), "{again:#}");
    }

    #[test]
    fn an_empty_folder_is_taken_over_and_a_file_is_not() {
        let parent = tempfile::tempdir().unwrap();
        Folder::claim(Some(parent.path()), "virt")
            .unwrap()
            .publish()
            .unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        for out in [file.clone(), file.join("below")] {
            assert!(is_bad_input(
                &Folder::claim(Some(&out), "virt").unwrap_err()
            ));
        }
    }

    #[test]
    fn a_copy_is_written_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("results.json");
        let copy = Copy::claim("--json", &file).unwrap();
        assert!(!file.exists());
        copy.write("{}").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
        assert!(is_bad_input(
            &Copy::claim("--json", parent.path()).unwrap_err()
        ));
        assert!(is_bad_input(
            &Copy::claim("--json", &file.join("x")).unwrap_err()
        ));
    }
}
