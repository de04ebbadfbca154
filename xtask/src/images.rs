// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building both images with Cargo.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::pack::{GIVEN, Images, OURS, flatten};
use crate::{places, toolchain};

const PROFILE: &str = "image";
const HYPERVISOR: &str = "hypervisor";
const GUEST: &str = "guest-kernel-shim";
const TEST_KERNEL: &str = "test-kernel";

/// What was built.
#[derive(Debug)]
pub struct Built {
    /// What is booted.
    pub images: Images,
    /// The hypervisor with its symbols.
    pub hypervisor: PathBuf,
    /// Our guest with its symbols; `None` if another one was packed.
    pub guest: Option<PathBuf>,
}

/// Builds, flattens and packs. `guest` replaces our own.
pub fn build(board: &str, guest: Option<&[u8]>) -> Result<Built> {
    toolchain::ensure_target()?;
    let mut packages = vec![HYPERVISOR];
    if guest.is_none() {
        packages.push(GUEST);
    }
    cargo_build(&packages)?;
    let image = flat(HYPERVISOR)?;
    let images = match guest {
        Some(guest) => Images::write(board, GIVEN, &image, guest)?,
        None => Images::write(board, OURS, &image, &flat(GUEST)?)?,
    };
    Ok(Built {
        images,
        hypervisor: elf(HYPERVISOR),
        guest: guest.is_none().then(|| elf(GUEST)),
    })
}

/// The kernel that stands for somebody else's in tests, as it is given: an arm64 Image.
pub fn test_kernel() -> Result<Vec<u8>> {
    toolchain::ensure_target()?;
    cargo_build(&[TEST_KERNEL])?;
    flat(TEST_KERNEL)
}

/// A directory of their own: Cargo locks the one that runs this program.
fn directory() -> PathBuf {
    places::target().join("image-build")
}

/// The ELF file of a package.
fn elf(package: &str) -> PathBuf {
    let directory = directory().join(toolchain::TARGET);
    directory.join(PROFILE).join(package)
}

fn flat(package: &str) -> Result<Vec<u8>> {
    let path = elf(package);
    let file = fs::read(&path).with_context(|| {
        format!(
            "{} was not built; package {package} must have a binary",
            path.display()
        )
    })?;
    flatten(&file).with_context(|| path.display().to_string())
}

/// Cargo's setting that gives files of dependencies, whose names are in messages
/// of panics, the same names wherever Cargo keeps them: the same source makes the
/// same image on every machine.
fn remapped() -> String {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let home = home.unwrap_or_default().display().to_string();
    let flags = toml::Value::from(vec![format!("--remap-path-prefix={home}=/cargo")]);
    format!("target.{}.rustflags={flags}", toolchain::TARGET)
}

fn cargo_build(packages: &[&str]) -> Result<()> {
    let color = if io::stderr().is_terminal() {
        "always"
    } else {
        "never"
    };
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .args(["build", "--profile", PROFILE, "--color", color])
        .args(["--target", toolchain::TARGET])
        .arg("--target-dir")
        .arg(directory())
        .arg("--config")
        .arg(remapped())
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut cargo = cargo.spawn().context("cargo can't be started")?;
    // That everything was up to date is not worth a line.
    let said = cargo.stderr.take().map(BufReader::new);
    for line in said
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(Result::ok)
    {
        if !line.contains("Finished") {
            eprintln!("{line}");
        }
    }
    if !cargo.wait()?.success() {
        bail!("the images don't build; what cargo said is above");
    }
    Ok(())
}
