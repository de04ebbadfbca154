// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that `cargo xtask` starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    start::become_verb_program()
}
