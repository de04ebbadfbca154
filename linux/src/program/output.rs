// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs: a file, in a file system whose size limits the output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};

use rustix::mount::MountFlags;

/// Folder of the file, if this program is the first process.
const FOLDER: &str = "/rouse-output";
/// Size of the file system, and the mount option that sets it.
const MOST: u64 = 4 << 20;
const SIZE: &std::ffi::CStr = c"size=4m";

/// Mounts the file system, if the kernel supports it. Without this file system, the output has no limit.
pub fn mount() {
    if fs::create_dir_all(FOLDER).is_ok() {
        let _ = rustix::mount::mount("tmpfs", FOLDER, "tmpfs", MountFlags::empty(), SIZE);
    }
}

/// The last part of an output.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// The bytes of this part.
    pub bytes: Vec<u8>,
    /// The number of bytes before this part.
    pub before: u64,
}

/// The output of a program and its children. The output stays readable, whatever the programs do to the file's name.
#[derive(Debug)]
pub struct OutputFile {
    read: File,
    place: String,
}

impl OutputFile {
    /// Creates an empty file.
    ///
    /// # Errors
    /// The file can't be created.
    pub fn new() -> io::Result<Self> {
        let place = match fs::exists(FOLDER)? {
            true => format!("{FOLDER}/output"),
            false => format!("{}/rouse-output", std::env::temp_dir().display()),
        };
        // An earlier program may have replaced the file.
        let _ = fs::remove_file(&place);
        File::create(&place)?;
        let read = File::open(&place)?;
        Ok(Self { read, place })
    }

    /// Opens the file for a program. Each write appends to the file, whatever name the program opens it by.
    ///
    /// # Errors
    /// The file can't be opened.
    pub fn file(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(&self.place)
    }

    /// Returns the last part of the output.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn read_end(&mut self) -> io::Result<Printed> {
        let before = self.read.metadata()?.len().saturating_sub(MOST);
        let mut bytes = Vec::new();
        self.read.seek(SeekFrom::Start(before))?;
        (&self.read).take(MOST).read_to_end(&mut bytes)?;
        Ok(Printed { bytes, before })
    }

    /// Returns whether the output has filled the file system.
    ///
    /// # Errors
    /// The kernel does not report the file's length.
    pub fn is_full(&self) -> io::Result<bool> {
        Ok(self.read.metadata()?.len() >= MOST)
    }
}
