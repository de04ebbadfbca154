// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the guest's console to standard output.

use std::error;
use std::fmt;
use std::io::{self, IsTerminal, Stdout, Write};

use rustix::termios;
use wire::{Guard, Source};

use crate::options::KIB;

/// Maximum length of a line in bytes; a longer line is written in parts.
const LONGEST: usize = 4096;

/// The guest has written more than its limit.
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

/// Writes the output of a measuring guest in whole lines. Each line reaches a terminal completely before the guest goes
/// on, so that no output is pending while the guest measures. Text of any other guest is written as it arrives.
#[derive(Debug)]
pub struct Console {
    out: Stdout,
    is_terminal: bool,
    guard: Guard,
    by_lines: bool,
    /// The last byte that the guest wrote.
    last: u8,
    line: Vec<u8>,
    written: u64,
    most: u64,
}

impl Console {
    /// Creates a console for a guest of `source`, with a limit of `most` bytes.
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

    /// Returns the number of bytes that the guest has written.
    pub const fn bytes_written(&self) -> u64 {
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

    /// Does nothing, because the serial port flushes after each byte, and the console writes whole lines.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Console {
    /// Ends the current line and writes it, since the next output does not come from the guest.
    pub fn end_line(&mut self) -> io::Result<()> {
        if self.last != b'\n' {
            self.line.push(b'\n');
            self.last = b'\n';
        }
        self.send()
    }

    /// Writes the buffered bytes.
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
