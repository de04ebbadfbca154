// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two kinds of failure, which have different exit statuses.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

use page::grid::wrapped;

use crate::interrupt;
use crate::terminal::{note, width_aside};

/// An error in the request itself: an argument, a board, a file or a tool is wrong or missing. Every other error is a
/// failure of the run.
#[derive(Debug)]
pub struct BadInput(String);

impl BadInput {
    /// Returns an error with the one-line message `message`.
    pub fn error(message: impl Into<String>) -> anyhow::Error {
        Self(message.into()).into()
    }

    /// Returns a value to use as the context of another error. An [`anyhow::Error`] as context would lose its type.
    pub fn context(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Returns early with a [`BadInput`] of the formatted text.
#[macro_export]
macro_rules! bad_input {
    ($($arg:tt)*) => { return Err($crate::failure::BadInput::error(format!($($arg)*))) };
}
pub use crate::bad_input;

/// A message with lines below it: output of a tool or a console.
#[derive(Debug)]
struct Listed(String);

/// Returns an error with `message` and, below it, `lines`.
pub fn listed(message: &str, lines: &str) -> anyhow::Error {
    Listed(format!("{}:\n{lines}", message.replace('\n', " "))).into()
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Listed {}

/// Whether an error concerns the request: the error, or one of its contexts, is [`BadInput`].
pub fn is_bad_input(error: &anyhow::Error) -> bool {
    error.is::<BadInput>()
}

/// Exit status of every failure, or 0 if the kind of failure determines the status.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Ends the program with `status` after any failure, regardless of its kind, unless a signal ends the program.
pub fn exit_with(status: u8) {
    STATUS.store(status, Ordering::Relaxed);
}

/// Prints an error as one line, and returns its exit status. After a signal, the status is the signal's status,
/// regardless of what has failed because of the signal.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let told = format!("error: {error:#}");
    let lines: Vec<&str> = match error.is::<Listed>() {
        true => told.lines().collect(),
        false => vec![&told],
    };
    // On a terminal, a long line is broken between words. Files and pipes get one line for each error.
    let lines = lines
        .into_iter()
        .flat_map(|line| wrapped(line, width_aside()));
    lines.for_each(|line| note!("{line}"));
    ExitCode::from(match interrupt::signal() {
        Some(signal) => signal.exit_status(),
        None if STATUS.load(Ordering::Relaxed) != 0 => STATUS.load(Ordering::Relaxed),
        None if is_bad_input(error) => 2,
        None => 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn context_does_not_hide_bad_input() {
        let error = Err::<(), _>(BadInput::error("x")).context("y").unwrap_err();
        assert!(is_bad_input(&error));
        assert!(!is_bad_input(&anyhow!("x")));
    }

    #[test]
    fn bad_input_may_be_the_context() {
        let error = Err::<(), _>(anyhow!("x")).context(BadInput::context("y"));
        let error = error.context("z").unwrap_err();
        assert!(is_bad_input(&error));
        assert_eq!(format!("{error:#}"), "z: y: x");
    }
}
