// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program with the everyday verbs. For any other verb, it builds the program `xtask-dev` and replaces its own
//! process with it.

use std::process::ExitCode;

use xtask::cli::{Cli, Verb};

fn main() -> ExitCode {
    xtask::run_program(
        |line: &Cli| line.common,
        |line| match line.verb {
            Verb::Everyday(verb) => xtask::run_everyday(verb).map(|()| None),
            Verb::Experiment(_)
            | Verb::Explain(_)
            | Verb::Governors(_)
            | Verb::Test(_)
            | Verb::Dev(_) => Ok(Some(start::become_dev())),
        },
    )
}
