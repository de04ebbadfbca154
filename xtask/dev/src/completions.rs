// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `completions`: a shell's rules for the command line, made from the options themselves.

mod words;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::DevCli;
use shell::terminal;

/// The name of the completed command. `cargo xtask` has two words, and Cargo's own rules complete the first one. So the
/// rules are for a shell function with this name, which is distinct from `cargo xtask`.
const NAME: &str = "xtask";

/// Script that makes bash complete lists and words with colons by the rules for single words.
const LISTS_OF_BASH: &str = include_str!("completions/lists.bash");

/// Writes the rules for `shell` to standard output.
pub fn completions(shell: Shell) -> Result<()> {
    let mut rules = Vec::new();
    let mut command = words::with_words(DevCli::command())?;
    clap_complete::generate(shell, &mut command, NAME, &mut rules);
    match shell {
        Shell::Bash => rules.extend(LISTS_OF_BASH.as_bytes()),
        Shell::Zsh => rules = lists_of_zsh(&String::from_utf8(rules)?).into_bytes(),
        _ => {}
    }
    print_text(&rules)
}

/// Makes the rules complete every word of a list, and not only the first one (zshcompsys(1), `_sequence`).
fn lists_of_zsh(rules: &str) -> String {
    let line = |line: &str| match line.split_once(":LIST:(") {
        Some((before, words)) => {
            let words = words.replacen(')', "", 1);
            format!("{before}:LIST:_sequence compadd - {words}\n")
        }
        None => format!("{line}\n"),
    };
    rules.lines().map(line).collect()
}

pub fn print_text(text: &[u8]) -> Result<()> {
    terminal::unless_reader_left(terminal::write(text)).context("standard output can't be written")
}
