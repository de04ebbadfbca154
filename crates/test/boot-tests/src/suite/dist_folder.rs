// SPDX-License-Identifier: MIT OR Apache-2.0
//! `dist` makes an equal folder each time, with the checksums of its files. `dist` refuses to make a folder if a file
//! contains a path on this machine. The image is byte for byte the same, whatever folder it is built in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use providing::toolchain;
use publishing::dist;
use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// Name of the folder with a copy of the sources.
const COPY: &str = "r\u{f6}use, a copy";
/// The folder to which images map the paths of dependencies. On a machine where a user has a folder with this path, the
/// mapped paths name files of that machine.
const NAMED_IN_IMAGES: &str = "/cargo/registry";

/// Makes the folder of `dist` twice, and once more as a user who has the folder that images name. Then builds the image
/// in a copy of the sources.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let [first, second, third] = ["1", "2", "3"].map(|name| place.path().join(name));
    for to in [&first, &second] {
        output_of(&mut dist_command(to)?)?;
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
    check_refusal(&third)?;
    check_copy(place.path())
}

/// Runs `dist` as a user whose own paths appear in images, and checks that it refuses.
fn check_refusal(to: &Path) -> Result<()> {
    let mut making = dist_command(to)?;
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

/// Checks that a copy of the sources gives the same packed image, byte for byte. The image contains an empty guest:
/// compiling Rouse's own two guests, which have the same compiler flags, would take four minutes of processor time in
/// the copy.
fn check_copy(place: &Path) -> Result<()> {
    let copy = place.join(COPY);
    copy_sources(&copy)?;
    let guest = place.join("guest.img");
    fs::write(&guest, empty_guest())?;
    let image = |root: &Path| -> Result<Vec<u8>> {
        let mut build = this_program()?;
        build.args(["dev", "build"]).arg("--guest").arg(&guest);
        let path = output_of(build.env(places::ROOT, root).current_dir(root))?;
        let path = root.join(String::from_utf8(path)?.trim());
        fs::read(&path).with_context(|| path.display().to_string())
    };
    ensure!(
        image(places::root())? == image(&copy)?,
        "the images of two folders with the same sources differ"
    );
    Ok(())
}

/// Returns an arm64 Image (Documentation/arch/arm64/booting.rst of Linux) with a header and no code.
fn empty_guest() -> Vec<u8> {
    let mut image = vec![0; 4096];
    image[16..24].copy_from_slice(&4096_u64.to_le_bytes());
    image[56..60].copy_from_slice(b"ARM\x64");
    image
}

/// Clones the repository, with the files of the working tree. The clone has no build products, except the tools in
/// `target/tools`.
fn copy_sources(to: &Path) -> Result<()> {
    let root = places::root();
    let git = |arguments: &[&str]| -> Result<String> {
        let mut git = Command::new("git");
        Ok(String::from_utf8(output_of(
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

fn dist_command(to: &Path) -> Result<Command> {
    let mut command = this_program()?;
    command.args(["dev", "dist"]).arg("--to").arg(to);
    Ok(command)
}

/// Runs `command` and returns its standard output.
fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = processor_time::output(command)?;
    ensure!(output.status.success(), "{}", printed(&output));
    Ok(output.stdout)
}

fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}
