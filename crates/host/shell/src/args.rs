// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the command line. For tests, and for callers that have options as text, parses the options of one verb
//! alone.

use std::env;
use std::ffi::OsString;

use anstream::ColorChoice;
use anyhow::{Context, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, Error, Parser, ValueEnum};

use crate::failure::BadInput;
use crate::output::file_arguments;
use crate::terminal;

/// Options of every verb.
#[derive(Args, Clone, Copy, Debug)]
pub struct CommonArgs {
    /// Whether the output has colours: always, never, or auto: on a terminal without NO_COLOR
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true, hide_short_help = true, help_heading = OUTPUT)]
    pub color: Colour,
    /// Print only results and errors, no progress
    #[arg(long, short, global = true, hide_short_help = true, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// Heading of the output options in the help.
pub const OUTPUT: &str = "Output, debugger and tests";

/// Whether the output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

impl CommonArgs {
    /// Applies these options to all further output on the terminal.
    pub fn set(self) {
        terminal::set_colour(match self.color {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        });
        if self.quiet {
            terminal::be_quiet();
        }
    }
}

/// Reads the command line. If it requested help or the version, prints that and returns `None`. Reports mistakes in one
/// line, like every other error.
///
/// # Errors
///
/// [`BadInput`] for a mistake, and other errors if help or version can't be printed.
pub fn read<C: Parser>() -> Result<Option<C>> {
    let mut command = C::command();
    let typed = command.try_get_matches_from_mut(env::args_os());
    let typed = typed.inspect(|typed| file_arguments::note_values(&command, typed));
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
        _ => Err(BadInput::error(told(&command, &error))),
    }
}

/// The end of a line that describes a mistake.
const HELP: &str = "; --help lists what there is";

/// Describes a mistake in one line. For an unknown verb, also names the nearest verb.
pub fn told(command: &Command, error: &Error) -> String {
    let line = request::one_line(error);
    let typed = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) => typed,
        _ => return line,
    };
    let mut verbs = Vec::new();
    for verb in command.get_subcommands() {
        let name = verb.get_name();
        verbs.push(name.to_owned());
        verbs.extend(
            verb.get_subcommands()
                .map(|of| format!("{name} {}", of.get_name())),
        );
    }
    let name = |verb: &String| {
        verb.rsplit(' ')
            .next()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let names: Vec<String> = verbs.iter().map(name).collect();
    let near = plan::nearest(typed, names.iter().map(String::as_str));
    let near = verbs.iter().find(|verb| Some(name(verb).as_str()) == near);
    match (near, line.strip_suffix(HELP)) {
        (Some(near), Some(why)) => format!("{why}; use {near}{HELP}"),
        _ => line,
    }
}

/// Reads the options `A` from words of a command line. The first word is the program's name.
///
/// # Errors
///
/// For the same mistakes as on the command line: unknown options, values out of range.
pub fn parse<A: Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> std::result::Result<A, Error> {
    let command = A::augment_args(Command::new("cargo xtask"));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}
