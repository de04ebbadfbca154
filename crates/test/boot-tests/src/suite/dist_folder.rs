// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of `dist`: equal each time it is made, with the sums of its files, and refused if a file contains a path
//! of the machine; and the image: equal in any folder, byte for byte.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use providing::toolchain;
use publishing::dist;
use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// Folder of a copy of the sources.
const COPY: &str = "r\u{f6}use, a copy";
/// Name of the folder of dependencies' files in images. On a machine whose user has such a folder, these are paths of
/// that machine.
const NAMED_IN_IMAGES: &str = "/cargo/registry";

/// Makes the folder twice, and once as that user; and builds the hypervisor in a copy of the sources.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let [first, second, third] = ["1", "2", "3"].map(|name| place.path().join(name));
    for to in [&first, &second] {
        done(&mut making(to)?)?;
        dist::check(to)?;
    }
    let sums = |to: &Path| fs::read_to_string(to.join(dist::SUMS));
    let (before, after) = (sums(&first)?, sums(&second)?);
    let changed: Vec<_> = before
        .lines()
        .zip(after.lines())
        .filter(|(a, b)| a != b)
        .collect();
    ensure!(before == after, "two folders differ: {changed:?}");
    as_another(&third)?;
    in_a_copy(place.path())
}

/// Makes it where images contain paths of the machine.
fn as_another(to: &Path) -> Result<()> {
    let mut making = making(to)?;
    if let Some(home) = toolchain::output("rustup", &["show", "home"]) {
        making.env("RUSTUP_HOME", home.trim());
    }
    making
        .env("CARGO_HOME", toolchain::home())
        .env("HOME", NAMED_IN_IMAGES);
    let output = processor_time::output(&mut making)?;
    let printed = printed(&output);
    ensure!(
        output.status.code() == Some(1) && printed.contains("rouse.efi: a path of this machine"),
        "a path of this machine is published: {}\n{printed}",
        output.status
    );
    ensure!(!to.exists(), "a folder is left that was refused");
    Ok(())
}

/// The packed image of a copy is that of this folder, byte for byte. It has a guest of this test: with Rouse's own two, which
/// are compiled by equal flags, the copy would take four minutes of processor time.
fn in_a_copy(place: &Path) -> Result<()> {
    let copy = place.join(COPY);
    copy_sources(&copy)?;
    let guest = place.join("guest.img");
    fs::write(&guest, empty_guest())?;
    let image = |root: &Path| -> Result<Vec<u8>> {
        let mut build = this_program()?;
        build.args(["dev", "build"]).arg("--guest").arg(&guest);
        let path = done(build.env(places::ROOT, root).current_dir(root))?;
        let path = root.join(String::from_utf8(path)?.trim());
        fs::read(&path).with_context(|| path.display().to_string())
    };
    ensure!(
        image(places::root())? == image(&copy)?,
        "the images of two folders with the same sources differ"
    );
    Ok(())
}

/// The header of an arm64 Image (Documentation/arch/arm64/booting.rst of Linux) and nothing after it.
fn empty_guest() -> Vec<u8> {
    let mut image = vec![0; 4096];
    image[16..24].copy_from_slice(&4096_u64.to_le_bytes());
    image[56..60].copy_from_slice(b"ARM\x64");
    image
}

/// Clones the repository with the files as they are here. The clone has nothing that was built, except tools of others.
fn copy_sources(to: &Path) -> Result<()> {
    let root = places::root();
    let git = |arguments: &[&str]| -> Result<String> {
        let mut git = Command::new("git");
        Ok(String::from_utf8(done(
            git.args(arguments).current_dir(root),
        )?)?)
    };
    let shown = to.to_str().context("the folder's name is text")?;
    git(&["clone", "--quiet", "--shared", ".", shown])?;
    let names = git(&[
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])?;
    for name in names.split_terminator('\0') {
        let (from, to) = (root.join(name), to.join(name));
        if from.exists() {
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            fs::copy(&from, &to).with_context(|| name.to_owned())?;
        } else {
            fs::remove_file(to)?;
        }
    }
    fs::create_dir(to.join("target"))?;
    symlink(places::target().join("tools"), to.join("target/tools"))?;
    Ok(())
}

fn this_program() -> Result<Command> {
    Ok(Command::new(places::program()?))
}

fn making(to: &Path) -> Result<Command> {
    let mut command = this_program()?;
    command.args(["dev", "dist"]).arg("--to").arg(to);
    Ok(command)
}

/// Runs `command` and returns its standard output.
fn done(command: &mut Command) -> Result<Vec<u8>> {
    let output = processor_time::output(command)?;
    ensure!(output.status.success(), "{}", printed(&output));
    Ok(output.stdout)
}

fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}
