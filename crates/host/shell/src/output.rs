// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output to any named place.
//!
//! | destination | action |
//! |---|---|
//! | `-`, `/dev/stdout` | written to standard output, where nothing else is printed then |
//! | a file, or a path without a file | the file is replaced or created in one step, with its full contents |
//! | a symbolic link | the link stays, and its target is written |
//! | a FIFO, a character device, `/dev/fd/N` | written through |
//! | a block device | refused, unless the verb may write disks and has `--force`: then written through and synced |
//! | a folder, a socket | refused |
//!
//! Before there is anything to write, this module refuses files that can't be written. It also refuses files that
//! another option names, because a verb never replaces a file that it reads.

pub mod file_arguments;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::failure::{BadInput, bad_input};
use crate::terminal::{self, note};
use crate::{partial_files, places};

/// Number of bytes to write, or to skip as zeros, at a time.
const BLOCK: usize = 4096;
/// Largest number of links in a chain. A longer chain is taken for a cycle.
const LINKS: usize = 40;
/// Names of standard output in addition to `-`.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// Folders whose files stand for open descriptors.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

/// A place that is known to be writable before there is anything to write.
#[derive(Debug)]
pub struct Output {
    shown: String,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    File {
        target: PathBuf,
        partial: NamedTempFile,
    },
    Through(File),
    Disk(File),
}

/// Permission to write to block devices in addition to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disks {
    Never,
    /// The verb may write disks, but `--force` was not given.
    Unforced,
    /// `--force` was given.
    Forced,
}

impl Output {
    /// Claims the place that `option` names.
    pub fn claim(option: &str, named: &Path) -> Result<Self> {
        Self::claim_disk(option, named, Disks::Never)
    }

    /// Claims the place that `option` names, if the option was given.
    pub fn claim_any(option: &str, named: Option<&PathBuf>) -> Result<Option<Self>> {
        named.map(|named| Self::claim(option, named)).transpose()
    }

    /// Claims the place that `option` names for the contents of a disk.
    pub fn claim_disk(option: &str, named: &Path, disks: Disks) -> Result<Self> {
        let shown = named.display().to_string();
        file_arguments::refuse(option, named)?;
        let to = To::claim(option, named, disks)?;
        // The bytes of a disk make no sense on a terminal.
        if disks != Disks::Never && matches!(to, To::Stdout) && io::stdout().is_terminal() {
            bad_input!(
                "{option}: standard output is a terminal; name a file, or pipe it somewhere"
            );
        }
        Ok(Self { shown, to })
    }

    pub fn write(self, text: &str) -> Result<()> {
        self.write_bytes(text.as_bytes())
    }

    /// Writes bytes. In a file, blocks of zeroes take no space if the file system
    /// supports holes.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<()> {
        let written = match self.to {
            To::Stdout => terminal::unless_reader_left(terminal::write(bytes)).map_err(Into::into),
            To::Through(mut file) => {
                let bytes = terminal::bytes_for(&file, bytes);
                terminal::unless_reader_left(file.write_all(&bytes)).map_err(Into::into)
            }
            To::File { target, partial } => overwrite(&target, partial, bytes).map_err(Into::into),
            To::Disk(file) => write_disk(file, bytes),
        };
        written.with_context(|| format!("{} can't be written", self.shown))
    }
}

impl To {
    fn claim(option: &str, named: &Path, disks: Disks) -> Result<Self> {
        let shown = named.display();
        if named == Path::new("-") || is_stdout(named) {
            if !terminal::divert() {
                bad_input!("{option}: standard output is taken by another option; name a file");
            }
            return Ok(Self::Stdout);
        }
        let cant = |error: io::Error| {
            BadInput::error(format!(
                "{option}: {shown} can't be written ({error}); name another file"
            ))
        };
        let kind = match fs::metadata(named) {
            Ok(what) => what.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Self::claim_file(named).map_err(cant);
            }
            Err(error) => return Err(cant(error)),
        };
        if kind.is_fifo() {
            open_fifo(option, named).map(Self::Through).map_err(cant)
        } else if kind.is_char_device() || (kind.is_file() && is_descriptor(named)) {
            let file = OpenOptions::new().append(true).open(named);
            file.map(Self::Through).map_err(cant)
        } else if kind.is_file() {
            Self::claim_file(named).map_err(cant)
        } else if kind.is_block_device() {
            match disks {
                Disks::Forced => open_disk(named).map(Self::Disk).map_err(cant),
                Disks::Unforced => bad_input!(
                    "{option}: {shown} is a block device, whose contents would be lost; --force writes to it"
                ),
                Disks::Never => {
                    bad_input!(
                        "{option}: {shown} is a block device; name a file, or - for standard output"
                    )
                }
            }
        } else if kind.is_dir() {
            bad_input!("{option}: {shown} is a folder; name a file")
        } else {
            bad_input!(
                "{option}: {shown} is neither file nor FIFO; name a file, or - for standard output"
            )
        }
    }

    /// Returns the destination for a file that is replaced, or does not exist yet.
    fn claim_file(named: &Path) -> io::Result<Self> {
        let target = follow_links(named)?;
        // A read-only file must not be replaced either.
        let old = match OpenOptions::new().write(true).open(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            old => Some(old?.metadata()?),
        };
        let partial = partial_files::file(parent_folder(&target))?;
        if let Some(old) = old {
            partial.as_file().set_permissions(old.permissions())?;
        }
        Ok(Self::File { target, partial })
    }
}

/// Opens a FIFO, which blocks until there is a reader. Opens it only once, because closing an earlier descriptor would
/// show the reader an end of file, and the reader would leave.
fn open_fifo(option: &str, named: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    match options.write(true).custom_flags(nonblocking).open(named) {
        Ok(file) => {
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            Ok(file)
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            note!("{option}: {} waits for a reader", named.display());
            OpenOptions::new().write(true).open(named)
        }
        Err(error) => Err(error),
    }
}

/// Opens a block device that nothing else uses. A mounted device is refused (open(2),
/// O_EXCL on block devices).
fn open_disk(named: &Path) -> io::Result<File> {
    let alone = OFlags::EXCL.bits() as i32;
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(alone)
        .open(named)
}

/// Whether `named` is standard output by another name, or the file to which standard output is redirected. The file of
/// standard output must not be replaced.
fn is_stdout(named: &Path) -> bool {
    if STDOUT.iter().any(|name| named == Path::new(name)) {
        return true;
    }
    let identity = |what: &Metadata| (what.is_file(), what.dev(), what.ino());
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| File::from(stdout).metadata());
    match (stdout, fs::metadata(named)) {
        (Ok(stdout), Ok(named)) => named.is_file() && identity(&stdout) == identity(&named),
        _ => false,
    }
}

/// Whether `named` is an open descriptor, and not a file.
fn is_descriptor(named: &Path) -> bool {
    named == Path::new("/dev/stderr")
        || DESCRIPTORS
            .iter()
            .any(|folder| named.parent() == Some(Path::new(folder)))
}

/// Follows the links of a path, and returns the target, which need not exist.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = parent_folder(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("links that lead in a circle"))
}

/// Returns the folder of a path.
fn parent_folder(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Replaces the target's contents with `bytes`.
fn overwrite(target: &Path, partial: NamedTempFile, bytes: &[u8]) -> io::Result<()> {
    write_sparse(partial.as_file(), bytes)?;
    partial.persist(target)?;
    Ok(())
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

/// Writes `bytes` to the beginning of a device. Writes zeroes too, because the device has
/// other contents there.
fn write_disk(mut device: File, bytes: &[u8]) -> Result<()> {
    let size = device.seek(SeekFrom::End(0))?;
    ensure!(
        size >= bytes.len() as u64,
        "it has {size} bytes, and {} are needed, nothing was written",
        bytes.len()
    );
    device.seek(SeekFrom::Start(0))?;
    device.write_all(bytes)?;
    // Only a sync shows whether the data arrived.
    device.sync_all().context("it did not take everything")
}

/// Returns `path` in the form for messages. `-` is standard output.
pub fn shown(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard output".into(),
        _ => places::shown(&std::path::absolute(path).unwrap_or_else(|_| path.into())),
    }
}

#[cfg(test)]
mod tests;
