// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output as the end of the guest's console.

use std::error;
use std::fmt;
use std::io::{self, IsTerminal, Stdout, Write};

use rustix::termios;

use crate::options::KIB;

/// A line that is longer is written in parts.
const LONGEST: usize = 4096;

/// The guest has written more than it may.
#[derive(Debug)]
pub struct Flood(u64);

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the guest has written more than {} KiB to its console; --console lets it",
            self.0 / KIB
        )
    }
}

impl error::Error for Flood {}

/// Writes whole lines. A terminal has sent each before the guest goes on, so that nothing
/// of it is left to do while the guest measures.
#[derive(Debug)]
pub struct Console {
    out: Stdout,
    is_terminal: bool,
    line: Vec<u8>,
    written: u64,
    most: u64,
}

impl Console {
    /// Nothing is written yet, and at most `most` bytes will be.
    pub fn new(most: u64) -> Self {
        let out = io::stdout();
        Self {
            is_terminal: out.is_terminal(),
            out,
            line: Vec::with_capacity(LONGEST),
            written: 0,
            most,
        }
    }

    /// Bytes that came.
    pub const fn written(&self) -> u64 {
        self.written
    }
}

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            if self.written == self.most {
                return Err(Flood(self.most).into());
            }
            self.written += 1;
            self.line.push(byte);
            if byte == b'\n' || self.line.len() == LONGEST {
                self.send()?;
            }
        }
        Ok(bytes.len())
    }

    /// Of a byte that is written this is no end: lines are.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Console {
    /// Writes what there is.
    pub fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        self.out.flush()?;
        if self.is_terminal {
            termios::tcdrain(&self.out)?;
        }
        Ok(())
    }
}
