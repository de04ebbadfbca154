// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console's log, which is kept even if the disk is full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::Builder;

use crate::terminal::note;
use crate::{files, places};

/// A log. Writing to a log never fails, so that the boot can go on. If the log's file can't grow, the whole log moves
/// to a folder with enough space.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    /// Number of bytes that are known to be in the file.
    written: u64,
    /// The reason why the log had to move, if it did.
    lost: Option<io::Error>,
    /// Bytes that fit on no disk.
    memory: Vec<u8>,
}

impl Log {
    /// Creates the log `path`.
    pub fn create(path: PathBuf) -> Result<Self> {
        let file = File::create(&path);
        let file = file.map_err(|error| files::refused(&path, "written", &error))?;
        Ok(Self {
            file,
            path,
            written: 0,
            lost: None,
            memory: Vec::new(),
        })
    }

    /// Returns the whole log, and replaces bytes that are not UTF-8.
    pub fn text(&self) -> Result<String> {
        let shown = || self.path.display().to_string();
        let mut bytes = fs::read(&self.path).with_context(shown)?;
        bytes.truncate(usize::try_from(self.written)?);
        bytes.extend(&self.memory);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// If the log had to move, returns its place and the reason, as the end of a sentence.
    pub fn describe_move(&self) -> Option<String> {
        let why = self.lost.as_ref()?;
        let place = places::shown(&self.path);
        Some(match self.memory.len() {
            0 => format!("serial.log can't be written ({why}), it is {place} instead"),
            _ => format!(
                "serial.log can't be written ({why}), its beginning is {place}, and the rest was shown above"
            ),
        })
    }

    /// Returns the log's path for messages. `folder` is the present path of the folder in which the log was created.
    pub fn place(&self, folder: &str) -> String {
        match self.lost {
            None => format!("{folder}/serial.log"),
            Some(_) => places::shown(&self.path),
        }
    }

    /// Prints the bytes that fit on no disk to standard error, as a last resort.
    pub fn show_what_is_nowhere(&self) {
        let text = String::from_utf8_lossy(&self.memory);
        text.lines().for_each(|line| note!("{line}"));
    }

    /// Moves the log to `folder`.
    fn move_to(&mut self, folder: &Path) -> io::Result<()> {
        let old = fs::read(&self.path)?;
        let mut new = Builder::new()
            .prefix("rouse-serial-")
            .suffix(".log")
            .tempfile_in(folder)?;
        let old = &old[..old.len().min(self.written as usize)];
        new.write_all(old)?;
        (self.file, self.path) = new.keep()?;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.memory.is_empty() {
            self.memory.extend(bytes);
            return Ok(bytes.len());
        }
        if let Err(why) = self.append(bytes) {
            let first = self.lost.is_none();
            self.lost.get_or_insert(why);
            let elsewhere = std::env::temp_dir();
            let moved = first && self.move_to(&elsewhere).is_ok();
            if !moved || self.append(bytes).is_err() {
                self.memory.extend(bytes);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_a_file() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("serial.log");
        let mut log = Log::create(path.clone()).unwrap();
        writeln!(log, "one\r").unwrap();
        log.write_all(b"\xff\n").unwrap();
        assert_eq!(fs::read(path).unwrap(), b"one\r\n\xff\n");
        assert_eq!(log.text().unwrap(), "one\r\n\u{fffd}\n");
        assert_eq!(log.describe_move(), None);
    }

    #[test]
    fn a_full_disk_does_not_cost_the_log() {
        let parent = tempfile::tempdir().unwrap();
        let mut log = Log::create(parent.path().join("serial.log")).unwrap();
        log.write_all(b"before\n").unwrap();
        // From here on, the log's disk is full.
        log.file = File::options().write(true).open("/dev/full").unwrap();
        log.write_all(b"at\n").unwrap();
        log.write_all(b"after\n").unwrap();
        assert_eq!(log.text().unwrap(), "before\nat\nafter\n");
        assert_eq!(fs::read(&log.path).unwrap(), b"before\nat\nafter\n");
        let moved = log.describe_move().unwrap();
        assert!(moved.contains("No space left"), "{moved}");
        assert!(moved.contains(&places::shown(&log.path)), "{moved}");
        // The disk for the second log is full too.
        fs::remove_file(&log.path).unwrap();
        log.path = parent.path().join("serial.log");
        log.written = 7;
        log.file = File::options().write(true).open("/dev/full").unwrap();
        log.write_all(b"nowhere\n").unwrap();
        assert_eq!(log.text().unwrap(), "before\nnowhere\n");
        assert!(log.describe_move().unwrap().contains("shown above"));
    }
}
