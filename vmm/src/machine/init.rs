// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program as the first process of a host that only runs its guests.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::RESET;
use crate::archive;

/// The kernel's file systems, and where they are mounted.
const SYSTEMS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

/// Returns whether this is the first process.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Runs each guest in its own process, and prints how it ended in words that the reader of the console parses. Then
/// turns off or resets the machine, as the last guest did with its own machine.
pub fn run() -> ! {
    let restart = run_guests().unwrap_or_else(|error| {
        println!("rouse: refused: the host of the guest: {error}");
        false
    });
    let _ = io::stdout().flush();
    let command = match restart {
        true => RebootCommand::Restart,
        false => RebootCommand::PowerOff,
    };
    // This call does not return. If it did, the exit of the first process would make the kernel panic visibly.
    let _ = reboot(command);
    std::process::exit(1)
}

/// Runs the guests. Returns whether the last guest ended by a reset.
fn run_guests() -> io::Result<bool> {
    for (kind, place) in SYSTEMS {
        mount(kind, place, kind, MountFlags::empty(), None)?;
    }
    // The terminal must not change the guest's lines.
    if let Ok(mut terminal) = tcgetattr(io::stdout()) {
        terminal.make_raw();
        tcsetattr(io::stdout(), OptionalActions::Now, &terminal)?;
    }
    let root = Path::new("/");
    let mut reset = false;
    for words in archive::parse_runs(&fs::read_to_string(root.join(archive::RUNS))?) {
        let output = Command::new(root.join(archive::INIT))
            .args(words)
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::inherit())
            .stderr(Stdio::piped())
            .spawn()?
            .wait_with_output()?;
        reset = report_end(&output);
    }
    Ok(reset)
}

/// Prints how a guest ended. Returns whether it ended by a reset.
fn report_end(output: &Output) -> bool {
    let words = String::from_utf8_lossy(&output.stderr);
    print!("{words}");
    match output.status.code() {
        Some(0) => false,
        Some(2) => {
            let why = words.lines().last().unwrap_or_default();
            println!("rouse: refused: {}", why.trim_start_matches("rouse-kvm: "));
            false
        }
        Some(status) if status == i32::from(RESET) => true,
        Some(status) => {
            println!("rouse: exit status {status}");
            false
        }
        None => {
            println!(
                "rouse-kvm: ended by {}\nrouse: exit status 1",
                output.status
            );
            false
        }
    }
}
