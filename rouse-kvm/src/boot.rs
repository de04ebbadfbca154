// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rouse-kvm boot`: runs one guest under KVM from its image.

use std::process::ExitCode;

use clap::Parser;
use vmm::options::Options;

/// The first word of the command.
pub const WORD: &str = "boot";
/// Exit status if a request could not be tried.
const BAD_INPUT: u8 = 2;

/// Runs the command with `words`, the arguments after [`WORD`].
pub fn boot(words: impl Iterator<Item = String>) -> ExitCode {
    match Options::try_parse_from(words) {
        Ok(options) => run(&options),
        Err(error) if error.use_stderr() => fail(&request::one_line(&error)),
        Err(help) => {
            // If the reader has closed the pipe, this is not a failure.
            let _ = help.print();
            ExitCode::SUCCESS
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn run(options: &Options) -> ExitCode {
    match vmm::machine::run(options) {
        Ok(end) => {
            if let Some(words) = end.message() {
                eprint!("{words}");
            }
            ExitCode::from(end.status())
        }
        Err(obstacle) => fail(&obstacle),
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "aarch64")))]
fn run(_: &Options) -> ExitCode {
    fail(&crate::host::ELSEWHERE)
}

fn fail(why: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("rouse-kvm: {why}");
    ExitCode::from(BAD_INPUT)
}
