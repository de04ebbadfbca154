// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes records to standard output.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use wire::Line;

/// Numbers the records and writes them.
#[derive(Debug)]
pub struct Output<W> {
    to: W,
    next: u64,
}

impl<W: Write> Output<W> {
    /// Creates an output that has written nothing.
    pub const fn new(to: W) -> Self {
        Self { to, next: 0 }
    }

    /// Returns the number of the next record.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Starts a record of `kind`.
    pub fn record(&mut self, kind: impl Display) -> Line {
        let number = self.next;
        self.next += 1;
        Line::new(number, kind)
    }

    /// Writes a record.
    ///
    /// # Errors
    /// The record can't be written or is too long.
    pub fn send(&mut self, line: Line) -> io::Result<()> {
        let line = line
            .finish()
            .ok_or_else(|| io::Error::other("a record is too long"))?;
        // Use one write, so that no other output comes in between.
        self.to.write_all(format!("{line}\n").as_bytes())
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// The output can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Prints a record that explains the machine's end. `kind` is `refused` or `failed`. The record begins on a new line,
/// in case another thread is writing, and has as much of `why` as fits. Only the first reason counts: threads that give
/// up later, perhaps because of the first failure, wait here for ever.
pub fn give_up(kind: &str, why: &str) {
    static GIVEN_UP: AtomicBool = AtomicBool::new(false);
    while GIVEN_UP.swap(true, Relaxed) {
        thread::park();
    }
    println!("\n{}", given_up(kind, why));
}

fn given_up(kind: &str, why: &str) -> String {
    let starts = why.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
    let lines = starts
        .chain([0])
        .map(|end| Line::new(0, kind).field("why", &why[..end]));
    let line = lines.into_iter().find_map(Line::finish);
    line.map_or_else(String::new, |line| line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Record;

    #[test]
    fn why_it_gave_up_is_cut_to_a_record() {
        for why in ["", "no page: a b", &"\u{e4} ".repeat(200)] {
            let line = given_up("refused", why);
            let record = Record::parse(&line).unwrap();
            let read = record.text("why").unwrap().to_string();
            assert_eq!(record.kind, "refused");
            assert!(why.is_empty() || read.len() > 10);
            assert!(!why.is_ascii() || read == why, "{read}");
        }
    }
}
