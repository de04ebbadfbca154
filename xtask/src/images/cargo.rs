// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cargo, where it has something to do.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use fresh::Build;

use super::{PLANTED, planted};
use crate::terminal::note;
use crate::timings::{self, Part};
use crate::{places, spent, toolchain};

/// What of Cargo's lines is not worth one: that everything was up to date, and that one
/// build waits for the other to look at what is downloaded.
const QUIET: [&str; 2] = [
    "Finished",
    "Blocking waiting for file lock on package cache",
];

/// Builds `programs` into `directory`, by what `arguments` say; `note` stands behind each line that Cargo says.
pub fn build(
    directory: &Path,
    arguments: &[&str],
    programs: Vec<PathBuf>,
    note: &str,
) -> Result<()> {
    // A hypervisor with planted instructions is another one for each number of them.
    let planted = env::var_os(PLANTED).filter(|_| Some(directory) == planted().as_deref());
    let cargo = toolchain::cargo();
    let words = [&*cargo].into_iter();
    let words = words.chain(arguments.iter().map(OsStr::new));
    let words = words.chain(planted.as_deref());
    let wanted = Build::new(places::root(), directory, words, programs);
    let run = || run(directory, arguments, planted.is_some(), note);
    if !timings::part(Part::Cargo, || wanted.unless_fresh(run))? {
        bail!("the images don't build; what cargo said is above");
    }
    Ok(())
}

/// Has Cargo do it; whether it could.
fn run(directory: &Path, arguments: &[&str], planted: bool, note: &str) -> Result<bool> {
    let color = if io::stderr().is_terminal() {
        "always"
    } else {
        "never"
    };
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .args(["build", "--color", color])
        .arg("--target-dir")
        .arg(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if !planted {
        cargo.env_remove(PLANTED);
    }
    let mut cargo = cargo.spawn().with_context(toolchain::no_cargo)?;
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
    Ok(spent::wait(&mut cargo)?.success())
}
