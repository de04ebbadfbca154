// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `completions`: the command line for a shell, made from the options themselves.

mod words;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::DevCli;
use shell::terminal;

/// The name that is completed. `cargo xtask` is two words, of which Cargo's own rules complete the first; a function of
/// this name is distinct from it.
const NAME: &str = "xtask";

/// Completes lists and words with colons, by the rules for single words.
const LISTS_OF_BASH: &str = include_str!("completions/lists.bash");

/// Writes the rules for `shell`.
pub fn completions(shell: Shell) -> Result<()> {
    let mut rules = Vec::new();
    let mut command = words::with_words(DevCli::command())?;
    clap_complete::generate(shell, &mut command, NAME, &mut rules);
    if shell == Shell::Bash {
        rules.extend(LISTS_OF_BASH.as_bytes());
    }
    put(&rules)
}

pub fn put(text: &[u8]) -> Result<()> {
    terminal::unless_reader_left(terminal::write(text)).context("standard output can't be written")
}
