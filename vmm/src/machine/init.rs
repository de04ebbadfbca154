// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program as the first process of a host that only runs its guests.

use std::fs;
use std::io::{self, PipeReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};
use simulator::Records;

use super::RESET;
use crate::archive;

/// The kernel's file systems, and where they are mounted.
const SYSTEMS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

/// Time for the kernel of a simulated host to finish booting.
const SETTLES: Duration = Duration::from_millis(200);
/// Time that a simulator needs to show the records (boards/gem5/machine.py: `PART`).
const SHOWS: Duration = Duration::from_millis(2);

/// Returns whether this is the first process.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Runs each guest in its own process. Prints how the guest ended, in words that the reader of the console parses.
/// Then turns off or resets the machine, as the last guest did with its own machine. A simulated machine has no
/// firmware for that, so the simulator ends.
pub fn run() -> ! {
    let restart = run_guests().unwrap_or_else(|error| {
        println!("rouse: refused: the host of the guest: {error}");
        false
    });
    let _ = io::stdout().flush();
    if is_simulated() {
        let _ = tcdrain(io::stdout());
        thread::sleep(SHOWS);
        simulator::end();
    }
    let command = match restart {
        true => RebootCommand::Restart,
        false => RebootCommand::PowerOff,
    };
    // This call does not return. If it did, the exit of the first process would make the kernel panic visibly.
    let _ = reboot(command);
    std::process::exit(1)
}

/// Whether the kernel's command line announces a simulator.
fn is_simulated() -> bool {
    let words = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    words
        .split_ascii_whitespace()
        .any(|word| word == simulator::ANNOUNCED)
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
    let simulated = is_simulated();
    let text = match simulated {
        true => {
            thread::sleep(SETTLES);
            simulator::checkpoint();
            simulator::text().map_err(io::Error::other)?
        }
        false => fs::read_to_string(Path::new("/").join(archive::RUNS))?,
    };
    let mut reset = false;
    for words in archive::parse_runs(&text) {
        let output = match simulated {
            true => run_to_records(words)?,
            false => command(words).spawn()?.wait_with_output()?,
        };
        reset = report_end(&output);
    }
    Ok(reset)
}

/// Returns the command that runs a guest in its own process.
fn command(words: Vec<String>) -> Command {
    let root = Path::new("/");
    let mut command = Command::new(root.join(archive::INIT));
    command
        .args(words)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped());
    command
}

/// Runs a guest whose console goes to the simulator's file of records.
fn run_to_records(words: Vec<String>) -> io::Result<Output> {
    let (reader, writer) = io::pipe()?;
    // The command owns the pipe's other end until the end of the statement.
    let child = command(words).stdout(writer).spawn()?;
    copy_to_records(reader)?;
    child.wait_with_output()
}

/// Copies what comes from `reader` to the simulator's file of records, until its last writer ends.
fn copy_to_records(mut reader: PipeReader) -> io::Result<()> {
    let mut records = Records::of_host();
    let mut part = vec![0; 4096];
    loop {
        let mut rest = match reader.read(&mut part)? {
            0 => return Ok(()),
            length => &part[..length],
        };
        while !rest.is_empty() {
            match records.append(rest).min(rest.len()) {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
    }
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
