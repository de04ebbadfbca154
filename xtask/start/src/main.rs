// SPDX-License-Identifier: MIT OR Apache-2.0
//! Started by `cargo xtask`.

use std::process::ExitCode;

fn main() -> ExitCode {
    start::become_it()
}
