// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rouse-kvm`: one static program that is copied to an arm64 Linux machine with KVM and measures there. The program
//! has three roles:
//!
//! | started | it |
//! |---|---|
//! | as the first process of a host | runs itself with the words in the host's archive ([`vmm::archive`]) |
//! | with the word `boot` | only runs one guest under KVM ([`vmm`]) |
//! | otherwise | measures: boots the guests appended to its file, each in its own process, and shows their results |
//!
//! The measuring process opens and writes files, and never enters a guest. A process that enters
//! a guest can't open anything from then on (`vmm/src/machine/filter.rs`).

#![forbid(unsafe_code)]

mod boot;
mod boots;
mod command_line;
mod failure;
mod follow;
mod host;
mod measure;
mod output;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use command_line::Words;
use failure::Failure;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    if vmm::machine::init::is_init() {
        vmm::machine::init::run();
    }
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == boot::WORD).is_some() {
        return boot::boot(words);
    }
    match run_command() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rouse-kvm: {}", failure.why);
            ExitCode::from(failure.status)
        }
    }
}

/// Reads the command line and performs its request.
fn run_command() -> Result<(), Failure> {
    let words = match Words::try_parse() {
        Ok(words) => words,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // If the reader has closed the pipe, this is not a failure.
                let _ = error.print();
                return Ok(());
            }
            _ => return Err(Failure::bad_input(request::one_line(&error))),
        },
    };
    measure::measure(words)
}
