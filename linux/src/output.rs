// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records, one behind another, to the standard output.

use std::fmt::Display;
use std::io::{self, Write};

use wire::Line;

/// Writes records, and numbers them.
#[derive(Debug)]
pub struct Output<W> {
    to: W,
    next: u64,
}

impl<W: Write> Output<W> {
    /// One that has written nothing.
    pub const fn new(to: W) -> Self {
        Self { to, next: 0 }
    }

    /// The number of the next record.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Starts a record of `kind`.
    pub fn record(&mut self, kind: impl Display) -> Line {
        let number = self.next;
        self.next += 1;
        Line::new(number, kind)
    }

    /// Writes one.
    ///
    /// # Errors
    /// It can't be written, or is too long.
    pub fn send(&mut self, line: Line) -> io::Result<()> {
        let line = line
            .finish()
            .ok_or_else(|| io::Error::other("a record is too long"))?;
        // As a whole: other output comes before or behind it.
        self.to.write_all(format!("{line}\n").as_bytes())
    }

    /// Has all of it on its way.
    ///
    /// # Errors
    /// It can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
