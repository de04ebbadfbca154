// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said to people: results on standard output, everything else on standard
//! error.
//!
//! Where standard output is asked for as the place of a file ([`divert`]), nothing
//! but that file goes there.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};

/// Prints a formatted line of what was asked for.
macro_rules! say {
    ($($arg:tt)*) => { $crate::terminal::print(format_args!($($arg)*)) };
}
pub(crate) use say;

/// Prints a formatted line beside that, on standard error.
macro_rules! note {
    ($($arg:tt)*) => { $crate::terminal::print_aside(format_args!($($arg)*)) };
}
pub(crate) use note;

/// Whether standard output belongs to a file that was asked for.
static DIVERTED: AtomicBool = AtomicBool::new(false);
/// What was wrong when something that was asked for could not be printed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// From now on standard output is a file's, and what [`say!`] prints goes to standard
/// error. False if it is another's already.
pub fn divert() -> bool {
    !DIVERTED.swap(true, Ordering::Relaxed)
}

/// A line of some machine's console without what would move the terminal's
/// cursor or clear its screen: firmware draws.
pub fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            // A control sequence ends with a letter (ECMA-48, 5.4).
            '\u{1b}' if rest.next() == Some('[') => {
                rest.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\t' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Prints a line. What can't be is told by [`finish`]: a run goes on for what it writes.
pub fn print(line: fmt::Arguments<'_>) {
    let written = match DIVERTED.load(Ordering::Relaxed) {
        true => writeln!(io::stderr(), "{line}"),
        false => writeln!(io::stdout(), "{line}"),
    };
    remember(written);
}

/// Prints a line on standard error. There is no place to tell that it can't be: a
/// terminal that was closed, of which the hangup is being told, is no reason to fail.
pub fn print_aside(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a whole file to standard output.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Fails if something that was asked for could not be printed.
pub fn finish() -> Result<()> {
    remember(io::stdout().flush());
    let lost = LOST.lock().map_or(None, |mut lost| lost.take());
    lost.map_or(Ok(()), Err)
        .context("not everything could be printed, make room or name another place")
}

/// That a reader has gone (`| head`) is no reason to fail.
pub fn unless_reader_left(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn remember(written: io::Result<()>) {
    if let (Err(error), Ok(mut lost)) = (unless_reader_left(written), LOST.lock()) {
        lost.get_or_insert(error);
    }
}

/// Columns that a line has where [`say!`] prints; `None` where that is no terminal, or
/// one that does not say.
pub fn width() -> Option<usize> {
    let size = match DIVERTED.load(Ordering::Relaxed) {
        true if io::stderr().is_terminal() => rustix::termios::tcgetwinsize(io::stderr()),
        false if io::stdout().is_terminal() => rustix::termios::tcgetwinsize(io::stdout()),
        _ => return None,
    };
    let told = size.ok().map(|size| usize::from(size.ws_col));
    // Some terminals know only what the shell exports.
    let told = told.filter(|&width| width > 0);
    told.or_else(|| env::var("COLUMNS").ok()?.parse().ok())
}

/// Whether what [`say!`] prints may have colours: on a terminal that knows them, unless `NO_COLOR`
/// (no-color.org) or another variable that `anstream` knows is against it. Never in a pipe.
pub fn has_colours() -> bool {
    match DIVERTED.load(Ordering::Relaxed) {
        true => shows_colours(&io::stderr()),
        false => shows_colours(&io::stdout()),
    }
}

fn shows_colours(stream: &(impl IsTerminal + RawStream)) -> bool {
    IsTerminal::is_terminal(stream) && AutoStream::choice(stream) != ColorChoice::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_firmware_draws_is_left_out() {
        let line = "\u{1b}[2J\u{1b}[01;01H\u{1b}[=3hrouse: a\tb\u{7}\r \u{e4}\u{1b}[";
        assert_eq!(plain(line), "rouse: a\tb \u{e4}");
    }

    #[test]
    fn only_a_reader_that_left_is_no_failure() {
        let failed = |kind: io::ErrorKind| unless_reader_left(Err(kind.into()));
        assert!(failed(io::ErrorKind::BrokenPipe).is_ok());
        assert!(failed(io::ErrorKind::StorageFull).is_err());
    }
}
