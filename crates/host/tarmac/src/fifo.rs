// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads gem5's output from a FIFO while gem5 writes it, because the output is much longer than the part that is kept.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// Number of bytes of a trace to read at once.
const CHUNK: usize = 1 << 20;

/// A FIFO, and the thread that reads it.
#[derive(Debug)]
pub struct Fifo<T> {
    /// Keeps the FIFO open, so that the reader sees the end of the trace only when this file is closed.
    keeper: File,
    reader: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Fifo<T> {
    /// Creates a FIFO at `path` and a thread that runs `read` on it.
    pub fn listen(
        path: &Path,
        read: impl FnOnce(&mut BufReader<File>) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)
            .with_context(|| format!("{} can't be made a FIFO", path.display()))?;
        // Opening both ends does not block (Linux, fifo(7)).
        let keeper = OpenOptions::new().read(true).write(true).open(path)?;
        let mut trace = BufReader::with_capacity(CHUNK, File::open(path)?);
        let reader = std::thread::spawn(move || {
            let found = read(&mut trace);
            // Read the rest, because gem5 would otherwise block for ever on a full FIFO.
            io::copy(&mut trace, &mut io::sink()).context("gem5's trace can't be read")?;
            found
        });
        Ok(Self { keeper, reader })
    }

    /// Waits until the reader has read everything that was written, and returns its result.
    pub fn end(self) -> Result<T> {
        drop(self.keeper);
        let ended = self.reader.join();
        ended.map_err(|_| anyhow!("the reader of gem5's trace has panicked"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_reader_that_fails_does_not_block_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpu0");
        let fifo = Fifo::<()>::listen(&path, |_| Err(anyhow!("damaged"))).unwrap();
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(&[b'x'; 1 << 18]).unwrap();
        drop(writer);
        assert_eq!(fifo.end().unwrap_err().to_string(), "damaged");
    }

    #[test]
    fn everything_is_read_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpu0");
        let fifo = Fifo::listen(&path, |trace| {
            let mut text = Vec::new();
            trace.read_to_end(&mut text)?;
            Ok(text.len())
        });
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        writer.write_all(&[b'x'; 1 << 18]).unwrap();
        drop(writer);
        assert_eq!(fifo.unwrap().end().unwrap(), 1 << 18);
    }
}
