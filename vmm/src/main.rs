// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rouse-kvm`: see [`vmm`].

use std::process::ExitCode;

use vmm::options::{self, Command, HELP};

/// Status of what could not be tried.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    if vmm::machine::init::is_init() {
        vmm::machine::init::run();
    }
    match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => print!("{HELP}"),
        Ok(Command::Version) => println!("rouse-kvm {}", env!("CARGO_PKG_VERSION")),
        Ok(Command::Run(options)) => return run(&options),
        Err(mistake) => return fail(&mistake),
    }
    ExitCode::SUCCESS
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn run(options: &options::Options) -> ExitCode {
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
fn run(_: &options::Options) -> ExitCode {
    fail(
        &"KVM runs arm64 guests on arm64 Linux only; copy this program's build for it to such a machine",
    )
}

fn fail(why: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("rouse-kvm: {why}");
    ExitCode::from(BAD_INPUT)
}
