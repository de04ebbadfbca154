// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output for people: results on standard output, everything else on standard error.
//!
//! If a requested file is written to standard output ([`divert`]), nothing else is printed there.
//!
//! All output is printed here, a line at a time. Any text in it may come from a guest, a file or the environment. So
//! control characters, including line ends, are escaped on output ([`foreign`]). Tabs are not escaped, and neither
//! are the additions of this module: line ends, the colours of a table, and the line that is rewritten.
//!
//! Other output first clears the line that is rewritten.

mod colour;

use std::borrow::Cow;
use std::env;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use foreign::Quoted;
use page::document::Document;

/// Prints a formatted line of the requested output.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::terminal::print(format_args!($($arg)*)) };
}
pub use crate::say;

/// Prints a formatted line that is not part of the output, on standard error.
#[macro_export]
macro_rules! note {
    ($($arg:tt)*) => { $crate::terminal::print_aside(format_args!($($arg)*)) };
}
pub use crate::note;

/// Prints a formatted line of progress on standard error, unless people want [quiet](be_quiet).
#[macro_export]
macro_rules! step {
    ($($arg:tt)*) => {
        if !$crate::terminal::is_quiet() {
            $crate::terminal::print_aside(format_args!($($arg)*))
        }
    };
}
pub use crate::step;

/// Whether only results and errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);
/// Whether the terminal shows a line that [`rewrite_line`] printed.
static IN_PLACE: Mutex<bool> = Mutex::new(false);
/// Whether a line begun by [`begin_line`] is unfinished.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether standard output is reserved for a requested file.
static DIVERTED: AtomicBool = AtomicBool::new(false);
/// Error of requested output that could not be printed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Reserves standard output for the contents of a requested file. From now on, [`say!`] prints to standard error.
/// Returns `false` if standard output is already reserved for another file.
pub fn divert() -> bool {
    !DIVERTED.swap(true, Ordering::Relaxed)
}

/// Prints no progress from now on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether no progress is printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns a line of a machine's console without the sequences with which firmware moves the
/// terminal's cursor or clears its screen.
pub fn strip_sequences(line: &str) -> String {
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

/// Largest number of characters in a line on standard error. Our lines have fewer, and so do readable lines of a
/// console.
const LONGEST: usize = 2000;

/// Prints a line. [`finish`] reports a failure later, because a run goes on, in order to write its files.
pub fn print(line: fmt::Arguments<'_>) {
    put_line(&escape_line(&line.to_string()));
}

/// Prints lines.
pub fn print_lines<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) {
    lines
        .into_iter()
        .for_each(|line| print(format_args!("{}", line.as_ref())));
}

/// Prints a document with tables at most `width` wide, in colours if the terminal has them.
pub fn print_document(document: &Document, width: Option<usize>) {
    let paint = colour::painter(has_colours());
    // `painted` has already escaped the document's texts.
    document
        .painted(width, paint)
        .iter()
        .for_each(|line| put_line(line));
}

/// Prints text that begins a line, or continues the unfinished one.
pub fn begin_line(text: &str) {
    BEGUN.store(true, Ordering::Relaxed);
    write_out(&escape_line(text));
    // Without a line end, nothing else flushes the text.
    let _ = io::stdout().flush();
}

/// Prints `rest`, the part of `whole` that [`begin_line`] has not yet printed, or all of `whole` if other output came
/// between.
pub fn end_line(whole: &str, rest: &str) {
    let goes_on = BEGUN.swap(false, Ordering::Relaxed);
    write_out(&(escape_line(if goes_on { rest } else { whole }) + "\n"));
}

/// Ends the unfinished line, if there is one.
fn end_begun() {
    if BEGUN.swap(false, Ordering::Relaxed) {
        write_out("\n");
    }
}

fn write_out(text: &str) {
    clear_line();
    remember_error(match DIVERTED.load(Ordering::Relaxed) {
        true => io::stderr().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    });
}

/// Prints a line on standard error. Ignores errors, because there is no place to report them. A
/// closed terminal, whose hangup is being reported, is not a reason to fail.
pub fn print_aside(line: fmt::Arguments<'_>) {
    end_begun();
    let line = line.to_string();
    let line = match line.chars().nth(LONGEST) {
        Some(_) => Quoted::up_to(LONGEST, &line).to_string(),
        None => escape_line(&line),
    };
    clear_line();
    let _ = io::stderr().write_all((line + "\n").as_bytes());
}

/// Replaces the line that is rewritten on standard error, which is a terminal. Does nothing while an unfinished line of
/// the output is shown.
pub fn rewrite_line(line: &str) {
    if BEGUN.load(Ordering::Relaxed) {
        return;
    }
    let mut in_place = IN_PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    *in_place = true;
    let _ = write!(io::stderr(), "\r\x1b[K{}", escape_line(line));
}

/// Removes the rewritten line, if there is one.
pub fn clear_line() {
    let mut in_place = IN_PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *in_place) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn put_line(line: &str) {
    end_begun();
    write_out(&format!("{line}\n"));
}

/// Returns a line in a form that is safe for a terminal.
fn escape_line(line: &str) -> String {
    escaped_unless(line, |c| c == '\t')
}

fn escaped_unless(text: &str, own: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    foreign::escape(&mut escaped, text, own).expect("a string takes everything");
    escaped
}

/// Returns the bytes of a file for `stream`. A terminal gets only bytes that are safe for it.
pub fn bytes_for<'b>(stream: &impl IsTerminal, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    match stream.is_terminal() {
        true => {
            let text = String::from_utf8_lossy(bytes);
            let escaped = escaped_unless(&text, |c| ['\t', '\n'].contains(&c));
            escaped.into_bytes().into()
        }
        false => bytes.into(),
    }
}

/// Writes a whole file to standard output.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let bytes = bytes_for(&stdout, bytes);
    stdout.write_all(&bytes).and_then(|()| stdout.flush())
}

/// Fails if requested output could not be printed.
pub fn finish() -> Result<()> {
    remember_error(io::stdout().flush());
    let lost = LOST.lock().map_or(None, |mut lost| lost.take());
    lost.map_or(Ok(()), Err)
        .context("not everything could be printed, make room or name another place")
}

/// Ignores the error of a reader that has gone (`| head`), because it is not a failure.
pub fn unless_reader_left(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn remember_error(written: io::Result<()>) {
    if let (Err(error), Ok(mut lost)) = (unless_reader_left(written), LOST.lock()) {
        lost.get_or_insert(error);
    }
}

/// Returns the width in columns of the terminal that [`say!`] prints to. `None` if it is not a
/// terminal, or does not report its width.
pub fn width() -> Option<usize> {
    match DIVERTED.load(Ordering::Relaxed) {
        true => width_aside(),
        false => width_of(io::stdout()),
    }
}

/// Returns the width in columns of the terminal that [`note!`] prints to.
pub fn width_aside() -> Option<usize> {
    width_of(io::stderr())
}

fn width_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let told = rustix::termios::tcgetwinsize(stream).ok();
    let told = told.map(|size| usize::from(size.ws_col));
    // The width of some terminals is only in the shell's environment.
    let told = told.filter(|&width| width > 0);
    told.or_else(|| env::var("COLUMNS").ok()?.parse().ok())
}

/// Whether output of [`say!`] may have colours. [`set_colour`] decides. By default, a terminal that supports colours
/// has them, unless `NO_COLOR` (no-color.org) or another variable that `anstream` knows forbids them.
pub fn has_colours() -> bool {
    match DIVERTED.load(Ordering::Relaxed) {
        true => shows_colours(&io::stderr()),
        false => shows_colours(&io::stdout()),
    }
}

/// Decides whether output has colours.
pub fn set_colour(choice: ColorChoice) {
    choice.write_global();
}

fn shows_colours(stream: &(impl IsTerminal + RawStream)) -> bool {
    match ColorChoice::global() {
        ColorChoice::Auto => {
            IsTerminal::is_terminal(stream) && AutoStream::choice(stream) != ColorChoice::Never
        }
        choice => choice != ColorChoice::Never,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn colours_are_what_was_chosen_whatever_the_stream_is() {
        // A test has no terminal, or one without colours.
        set_colour(ColorChoice::Always);
        let always = has_colours();
        set_colour(ColorChoice::Never);
        let never = has_colours();
        set_colour(ColorChoice::Auto);
        assert!(always && !never);
    }

    #[test]
    fn what_firmware_draws_is_left_out() {
        let line = "\u{1b}[2J\u{1b}[01;01H\u{1b}[=3hrouse: a\tb\u{7}\r \u{e4}\u{1b}[";
        assert_eq!(strip_sequences(line), "rouse: a\tb \u{e4}");
    }

    /// Text that is printed elsewhere would not be escaped.
    #[test]
    fn nothing_else_prints() {
        fn look_in(folder: &Path) {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    look_in(&path);
                } else if !path.ends_with("src/terminal.rs") {
                    look_at(&path);
                }
            }
        }
        fn look_at(path: &Path) {
            // Asking for a stream's kind or its descriptor is not printing.
            const ASKS: [&str; 2] = ["is_terminal()", ".as_fd()"];
            let text = fs::read_to_string(path).unwrap();
            for line in text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                let prints = ["print!(", "println!(", "io::stdout()", "io::stderr()"];
                let prints = prints.iter().any(|word| line.contains(word));
                let asks = ASKS.iter().any(|word| line.contains(word));
                assert!(!prints || asks, "{}: {line}", path.display());
            }
        }
        look_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }

    #[test]
    fn a_line_is_one_and_acts_on_nothing() {
        let line = "a\tb\n\u{1b}[31mc\r\u{202e}";
        assert_eq!(escape_line(line), "a\tb\\u{a}\\u{1b}[31mc\\u{d}\\u{202e}");
    }

    #[test]
    fn only_a_reader_that_left_is_no_failure() {
        let failed = |kind: io::ErrorKind| unless_reader_left(Err(kind.into()));
        assert!(failed(io::ErrorKind::BrokenPipe).is_ok());
        assert!(failed(io::ErrorKind::StorageFull).is_err());
    }
}
