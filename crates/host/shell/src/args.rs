// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a verb, without the verb: for what has them as text, and for tests.

use std::ffi::OsString;

use clap::{Args, Command, Error};

/// Reads the options `A` from words of a command line, of which the first is the program's name.
///
/// # Errors
///
/// The ones of the command line: unknown options, values out of range.
pub fn parse<A: Args>(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<A, Error> {
    let command = A::augment_args(Command::new("cargo xtask"));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}
