// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error.

use std::fmt;
use std::io::{self, Write};

/// Prints a formatted line.
macro_rules! say {
    ($($arg:tt)*) => { $crate::terminal::print(format_args!($($arg)*)) };
}
pub(crate) use say;

/// Prints a formatted line to standard error.
macro_rules! tell {
    ($($arg:tt)*) => { $crate::terminal::print_error(format_args!($($arg)*)) };
}
pub(crate) use tell;

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

/// Prints a line. That nobody reads it any more (`| head`) is no reason to fail.
pub fn print(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Prints a line to standard error. A terminal that was closed, of which the hangup
/// is being told, is no reason to fail either.
pub fn print_error(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_firmware_draws_is_left_out() {
        let line = "\u{1b}[2J\u{1b}[01;01H\u{1b}[=3hrouse: a\tb\u{7}\r \u{e4}\u{1b}[";
        assert_eq!(plain(line), "rouse: a\tb \u{e4}");
    }
}
