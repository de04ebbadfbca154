// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs mdBook without installing it.
//!
//! mdBook comes as a program in a package from Python's index, which takes seconds to fetch. The authors of mdBook
//! publish compiled programs on a release host, and the source, whose dependencies take minutes to compile. They do not
//! publish this package. Therefore, `requirements.txt` has the hashes of the package's files, and pip accepts no other
//! files (pip, "Secure installs"). `ROUSE_MDBOOK` names another mdBook, for instance one built by `cargo install
//! mdbook`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use shell::failure::bad_input;
use shell::terminal::step;
use shell::{files, places};

/// The variable that names another mdBook.
const VARIABLE: &str = "ROUSE_MDBOOK";
const REQUIREMENTS: &str = "crates/host/publishing/src/book/requirements.txt";

/// Returns mdBook's program, and provides it if it is missing.
pub fn ensure_mdbook() -> Result<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(named.into());
    }
    let folder = places::target().join("tools").join("mdbook");
    let program = folder.join("bin/mdbook");
    // The requirements files: the one with which mdBook was provided, and the current one.
    let (done, wanted) = (
        folder.join("requirements.txt"),
        places::inside(REQUIREMENTS),
    );
    let wanted = fs::read(&wanted).with_context(|| wanted.display().to_string())?;
    let is_there = || program.is_file() && fs::read(&done).is_ok_and(|done| done == wanted);
    if is_there() {
        return Ok(program);
    }
    let _lock = files::lock(&places::target().join("tools/mdbook.lock"), || {})?;
    if !is_there() {
        fetch_mdbook(&folder)?;
        fs::write(&done, &wanted).with_context(|| done.display().to_string())?;
    }
    Ok(program)
}

/// Fetches mdBook into `folder`.
fn fetch_mdbook(folder: &Path) -> Result<()> {
    step!("fetching mdBook into {}", places::shown(folder));
    let mut python = Command::new("python3");
    python.args(["-m", "venv"]).arg(folder);
    run_command(python)?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"])
        .args([
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--requirement",
        ])
        .arg(places::inside(REQUIREMENTS));
    run_command(pip)
}

fn run_command(mut command: Command) -> Result<()> {
    let said = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    bad_input!(
        "mdBook can't be fetched; run `cargo install mdbook --version 0.5.4 --locked`, and name the program in {VARIABLE}: {said}"
    )
}
