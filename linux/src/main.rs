// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rouse-linux`: see [`linux`].

use std::process::ExitCode;

use linux::options::{self, Command, HELP};

/// Exit status if a request could not be tried.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    if linux::init::is_init() {
        linux::init::run();
    }
    match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => print!("{HELP}"),
        Ok(Command::Version) => println!("rouse-linux {}", env!("CARGO_PKG_VERSION")),
        Ok(Command::Run(arguments)) => return run(&arguments),
        Err(mistake) => return fail(&mistake),
    }
    ExitCode::SUCCESS
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn run(arguments: &str) -> ExitCode {
    match linux::bench::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "aarch64")))]
fn run(_: &str) -> ExitCode {
    fail(&"it measures arm64 Linux only; copy this program's build for it to such a machine")
}

fn fail(why: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("rouse-linux: {why}");
    ExitCode::from(BAD_INPUT)
}
