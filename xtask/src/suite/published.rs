// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of `dist`: the same each time it is made, with the sums of its files, and
//! refused if a file tells where it was made.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::partial::Scratch;
use crate::{dist, places, spent, toolchain};

/// How files of dependencies are called in images. On a machine whose user has such a folder, they are
/// paths of that machine.
const NAMED_IN_IMAGES: &str = "/cargo/registry";

/// Makes it twice, and once as that user.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let [first, second, third] = ["1", "2", "3"].map(|name| place.path().join(name));
    for to in [&first, &second] {
        let output = spent::output(&mut making(to)?)?;
        ensure!(output.status.success(), "{}", said(&output));
        dist::check(to)?;
    }
    let sums = |to: &Path| std::fs::read_to_string(to.join(dist::SUMS));
    let (before, after) = (sums(&first)?, sums(&second)?);
    let changed: Vec<_> = before
        .lines()
        .zip(after.lines())
        .filter(|(a, b)| a != b)
        .collect();
    ensure!(before == after, "two folders differ: {changed:?}");
    as_another(&third)
}

/// Has it made where images tell where they were made.
fn as_another(to: &Path) -> Result<()> {
    let mut making = making(to)?;
    let rustup = toolchain::output("rustup", &["show", "home"]);
    if let Some(home) = rustup {
        making.env("RUSTUP_HOME", home.trim());
    }
    making
        .env("CARGO_HOME", toolchain::home())
        .env("HOME", NAMED_IN_IMAGES);
    let output = spent::output(&mut making)?;
    let told = said(&output);
    ensure!(
        output.status.code() == Some(1) && told.contains("rouse.efi: a path of this machine"),
        "a path of this machine is published: {}\n{told}",
        output.status
    );
    ensure!(!to.exists(), "a folder is left that was refused");
    Ok(())
}

fn making(to: &Path) -> Result<Command> {
    let mut command = Command::new(places::program().context("this program")?);
    command.arg("dist").arg("--to").arg(to);
    Ok(command)
}

fn said(output: &Output) -> String {
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{said}{complained}")
}
