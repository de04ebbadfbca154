// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs Cargo, and shows its output unless everything is up to date.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use providing::toolchain;
use shell::processor_time;
use shell::terminal::{self, note};

use crate::Build;

/// Prefixes of lines to hide in Cargo's output. These lines report that everything is up to date, or that the build
/// waits for the package cache.
const QUIET: [&str; 2] = [
    "Finished",
    "Blocking waiting for file lock on package cache",
];

/// Builds programs. Prints the build's note after each of Cargo's lines.
pub fn build(build: &Build) -> Result<()> {
    if !run_cargo(build)? {
        bail!("the images don't build; cargo's output is above");
    }
    Ok(())
}

/// Runs Cargo. Returns whether it succeeded.
fn run_cargo(build: &Build) -> Result<bool> {
    let mut cargo = toolchain::cargo()
        .args(["build", "--color", "never"])
        .arg("--target-dir")
        .arg(build.directory)
        // All of Cargo's files are in that directory, whatever the user has configured.
        .env("CARGO_BUILD_BUILD_DIR", build.directory)
        .args(build.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(toolchain::no_cargo)?;
    let said = cargo.stderr.take().map(BufReader::new);
    let note = build.note;
    let mut unshown = Vec::new();
    for line in said
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(Result::ok)
    {
        if QUIET.iter().any(|quiet| line.contains(quiet)) {
            continue;
        }
        match terminal::is_quiet() {
            true => unshown.push(line),
            false => note!("{line}{note}"),
        }
    }
    let built = processor_time::wait(&mut cargo)?.success();
    if !built {
        unshown.iter().for_each(|line| note!("{line}{note}"));
    }
    Ok(built)
}
