// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs `completions` and `man`: the command line for a shell and for its reader, made from the options
//! themselves.

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::DevCli;
use shell::failure::bad_input;
use shell::terminal;

/// The name that is completed. `cargo xtask` is two words, of which Cargo's own rules complete the first; a function of
/// this name is distinct from it.
const NAME: &str = "xtask";

/// Writes the rules for `shell`.
pub fn completions(shell: Shell) -> Result<()> {
    let mut rules = Vec::new();
    clap_complete::generate(shell, &mut DevCli::command(), NAME, &mut rules);
    put(&rules)
}

/// Writes the page of `verb`, or the first page.
pub fn man(verb: Option<&str>) -> Result<()> {
    let mut all = DevCli::command();
    all.build();
    let command = match verb {
        None => all,
        Some(verb) => match all.find_subcommand(verb) {
            Some(of) => of.clone(),
            None => bad_input!("there is no verb `{verb}`; use {}", names(&all)),
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    put(&page)
}

fn put(text: &[u8]) -> Result<()> {
    terminal::unless_reader_left(terminal::write(text)).context("standard output can't be written")
}

fn names(all: &Command) -> String {
    let names: Vec<&str> = all.get_subcommands().map(Command::get_name).collect();
    names.join(", ")
}
