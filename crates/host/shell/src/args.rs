// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line, and the options of one verb without it: for callers that have them as text, and for tests.

use std::env;
use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Args, Command, Error, Parser};

use crate::failure::BadInput;
use crate::output::file_arguments;
use crate::terminal;

/// Reads the command line; `None` if it asked for help or the version, which were
/// printed as they are. Reports mistakes in one line like every other error.
///
/// # Errors
///
/// [`BadInput`] for a mistake; others if what was asked for can't be printed.
pub fn read<C: Parser>() -> Result<Option<C>> {
    let mut command = C::command();
    let typed = command.try_get_matches_from_mut(env::args_os());
    let typed = typed.inspect(|typed| file_arguments::words(&command, typed));
    let error = match typed.and_then(|typed| C::from_arg_matches(&typed)) {
        Ok(line) => return Ok(Some(line)),
        Err(error) => error.format(&mut command),
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let printed = terminal::unless_reader_left(error.print());
            printed.context("standard output can't be written")?;
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => Err(BadInput::error(request::one_line(&error))),
    }
}

/// Reads the options `A` from words of a command line; the first word is the program's name.
///
/// # Errors
///
/// The ones of the command line: unknown options, values out of range.
pub fn parse<A: Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> std::result::Result<A, Error> {
    let command = A::augment_args(Command::new("cargo xtask"));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}
