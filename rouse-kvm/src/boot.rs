// SPDX-License-Identifier: MIT OR Apache-2.0
//! One guest under KVM, by its image: what `rouse-kvm boot` does.

use std::process::ExitCode;

use vmm::options::{self, Command, HELP, Options};

/// The word that asks for it.
pub const WORD: &str = "boot";
/// Status of what could not be tried.
const BAD_INPUT: u8 = 2;

/// Runs the command of `words`, those after [`WORD`].
pub fn boot(words: impl Iterator<Item = String>) -> ExitCode {
    match options::parse(words) {
        Ok(Command::Help) => print!("{HELP}"),
        Ok(Command::Version) => println!("rouse-kvm {}", env!("CARGO_PKG_VERSION")),
        Ok(Command::Run(options)) => return run(&options),
        Err(mistake) => return fail(&mistake),
    }
    ExitCode::SUCCESS
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn run(options: &Options) -> ExitCode {
    match vmm::machine::run(options) {
        Ok(end) => {
            if let Some(words) = end.words() {
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
