// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of `dist`: the same each time it is made, with the sums of its files; and the image: the same wherever it is
//! built, byte for byte.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::partial::Scratch;
use crate::{dist, places, spent};

/// The image, and the folder of another copy of the sources.
const IMAGE: &str = "target/image/rouse-virt.img";
const COPY: &str = "r\u{f6}use, a copy";

/// Makes it twice, and its image in a copy of the sources.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let [first, second] = ["1", "2"].map(|name| place.path().join(name));
    for to in [&first, &second] {
        let mut making = this_program()?;
        done(making.arg("dist").arg("--to").arg(to))?;
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
    let copy = place.path().join(COPY);
    copy_sources(&copy)?;
    done(this_program()?.arg("build"))?;
    done(
        this_program()?
            .arg("build")
            .env(places::ROOT, &copy)
            .current_dir(&copy),
    )?;
    let image =
        |root: &Path| fs::read(root.join(IMAGE)).with_context(|| root.display().to_string());
    ensure!(
        image(places::root())? == image(&copy)?,
        "{IMAGE} differs between two folders with the same sources"
    );
    Ok(())
}

/// A clone with the files as they are here. Nothing is there that was built, but for the tools of others.
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
    Ok(Command::new(places::program().context("this program")?))
}

/// Runs `command`; its output.
fn done(command: &mut Command) -> Result<Vec<u8>> {
    let output = spent::output(command)?;
    let [printed, complained] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ensure!(output.status.success(), "{printed}{complained}");
    Ok(output.stdout)
}
