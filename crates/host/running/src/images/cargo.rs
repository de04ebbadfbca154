// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cargo, where it has something to do.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use providing::toolchain;
use shell::processor_time;
use shell::terminal::note;
use shell::timings::{self, Part};

/// Lines of Cargo's that are not shown: that everything was up to date, and that one build waits for the other to look
/// at what is downloaded.
const QUIET: [&str; 2] = [
    "Finished",
    "Blocking waiting for file lock on package cache",
];

/// Builds into `directory` by `arguments`; `note` follows each line of Cargo's.
pub fn build(directory: &Path, arguments: &[&str], note: &str) -> Result<()> {
    let run = || run(directory, arguments, note);
    if !timings::part(Part::Cargo, run)? {
        bail!("the images don't build; what cargo said is above");
    }
    Ok(())
}

/// Has Cargo do it; whether it could.
fn run(directory: &Path, arguments: &[&str], note: &str) -> Result<bool> {
    let mut cargo = toolchain::cargo()
        .args(["build", "--color", "never"])
        .arg("--target-dir")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(toolchain::no_cargo)?;
    let said = cargo.stderr.take().map(BufReader::new);
    for line in said
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(Result::ok)
    {
        if !QUIET.iter().any(|quiet| line.contains(quiet)) {
            note!("{line}{note}");
        }
    }
    Ok(processor_time::wait(&mut cargo)?.success())
}
