// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cargo, where it has something to do.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use fresh::Build;

use super::planted;
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
    timings::part(Part::Cargo, || {
        // A hypervisor with planted instructions is another one for each number of them.
        let planted =
            (Some(directory) == planted().as_deref()).then(|| env::var_os(super::PLANTED));
        let cargo = toolchain::cargo();
        let mut words: Vec<&OsStr> = vec![&cargo];
        words.extend(arguments.iter().map(OsStr::new));
        let value: Option<OsString> = planted.clone().flatten();
        words.extend(value.as_deref());
        let build = Build::new(places::root(), directory, words, programs);
        if build.is_fresh() {
            return Ok(());
        }
        // Where nothing can be written down Cargo is asked each time.
        let begun = build.begin().ok();
        run(directory, arguments, planted.is_some(), note)?;
        let _kept = begun.is_some_and(fresh::Begun::keep);
        Ok(())
    })
}

/// Has Cargo do it.
fn run(directory: &Path, arguments: &[&str], planted: bool, note: &str) -> Result<()> {
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
        cargo.env_remove(super::PLANTED);
    }
    let mut cargo = cargo.spawn().context("cargo can't be started")?;
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
    if !spent::wait(&mut cargo)?.success() {
        bail!("the images don't build; what cargo said is above");
    }
    Ok(())
}
