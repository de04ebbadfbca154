// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs: a file, in a file system that has no room for more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};

use rustix::mount::MountFlags;

/// Folder of the file, where this is the first process.
const FOLDER: &str = "/rouse-output";
/// Size of that file system, and its option.
const MOST: u64 = 4 << 20;
const SIZE: &std::ffi::CStr = c"size=4m";

/// Mounts the file system, if the kernel has it. Without it, an output is as long as a program makes it.
pub fn mount() {
    if fs::create_dir_all(FOLDER).is_ok() {
        let _ = rustix::mount::mount("tmpfs", FOLDER, "tmpfs", MountFlags::empty(), SIZE);
    }
}

/// The end of an output.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The number of bytes before them.
    pub before: u64,
}

/// The output of a program and its children. It stays readable whatever they do to its name.
#[derive(Debug)]
pub struct OutputFile {
    read: File,
    place: String,
}

impl OutputFile {
    /// Creates an empty file.
    ///
    /// # Errors
    /// It can't be created.
    pub fn new() -> io::Result<Self> {
        let place = match fs::exists(FOLDER)? {
            true => format!("{FOLDER}/output"),
            false => format!("{}/rouse-output", std::env::temp_dir().display()),
        };
        // An earlier program may have replaced it.
        let _ = fs::remove_file(&place);
        File::create(&place)?;
        let read = File::open(&place)?;
        Ok(Self { read, place })
    }

    /// Opens it for a program, whose parts are written one after another, by whichever name they open it.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn file(&self) -> io::Result<File> {
        OpenOptions::new().append(true).open(&self.place)
    }

    /// Returns the end of it.
    ///
    /// # Errors
    /// It can't be read.
    pub fn end(&mut self) -> io::Result<Printed> {
        let before = self.read.metadata()?.len().saturating_sub(MOST);
        let mut bytes = Vec::new();
        self.read.seek(SeekFrom::Start(before))?;
        (&self.read).take(MOST).read_to_end(&mut bytes)?;
        Ok(Printed { bytes, before })
    }

    /// Whether there was more than the file system holds.
    ///
    /// # Errors
    /// The kernel does not tell its length.
    pub fn is_full(&self) -> io::Result<bool> {
        Ok(self.read.metadata()?.len() >= MOST)
    }
}
