// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output as the end of the guest's console.

use std::error;
use std::fmt;
use std::io::{self, IsTerminal, Stdout, Write};

use rustix::termios;
use wire::{Guard, Source};

use crate::options::KIB;

/// A longer line is written in parts.
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

/// Writes whole lines of a guest that measures. A terminal has sent each before the guest goes on, so that nothing
/// of it is left to do while the guest measures. Text of another guest comes as it is written.
#[derive(Debug)]
pub struct Console {
    out: Stdout,
    is_terminal: bool,
    guard: Guard,
    by_lines: bool,
    /// The last byte that came.
    last: u8,
    line: Vec<u8>,
    written: u64,
    most: u64,
}

impl Console {
    /// Nothing is written yet, and at most `most` bytes of a guest of `source` will be.
    pub fn new(most: u64, source: Source) -> Self {
        let out = io::stdout();
        Self {
            is_terminal: out.is_terminal(),
            out,
            guard: Guard::new(source),
            by_lines: source != Source::Foreign,
            last: b'\n',
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
            self.line.extend(self.guard.pass(byte));
            self.line.push(byte);
            self.last = byte;
            if byte == b'\n' || !self.by_lines || self.line.len() >= LONGEST {
                self.send()?;
            }
        }
        Ok(bytes.len())
    }

    /// Does nothing: the serial port flushes after each byte, but the console writes lines.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Console {
    /// Ends the current line and writes it: the next output is another's.
    pub fn end(&mut self) -> io::Result<()> {
        if self.last != b'\n' {
            self.line.push(b'\n');
            self.last = b'\n';
        }
        self.send()
    }

    /// Writes what there is.
    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        self.out.flush()?;
        if self.is_terminal {
            termios::tcdrain(&self.out)?;
        }
        Ok(())
    }
}
