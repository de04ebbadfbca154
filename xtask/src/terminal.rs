// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output.

use std::fmt;
use std::io::{self, Write};

/// Prints a formatted line.
macro_rules! say {
    ($($arg:tt)*) => { $crate::terminal::print(format_args!($($arg)*)) };
}
pub(crate) use say;

/// Prints a line. That nobody reads it any more (`| head`) is no reason to fail.
pub fn print(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{line}");
}
