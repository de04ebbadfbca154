// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building the images with Cargo: the hypervisor, and the program of the guest that the
//! boot arguments ask for.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use plan::Program;

use crate::output::Output;
use crate::pack::{flatten, pack};
use crate::store::{self, Kept};
use crate::terminal::note;
use crate::{places, toolchain};

const PROFILE: &str = "image";
const HYPERVISOR: &str = "hypervisor";
const GUEST: &str = "guest-kernel-shim";
const TEST_KERNEL: &str = "test-kernel";
const DIRTY_FIRMWARE: &str = "dirty-firmware";
/// Name of the packed image's file.
const PACKED: &str = "rouse.img";

/// What is packed behind the hypervisor.
#[derive(Clone, Copy, Debug)]
pub enum Guest<'a> {
    /// A program of our own.
    Ours(Program),
    /// The same without what can be left out: the features of the guest's package.
    Bare(Program),
    /// Another kernel, as it is given: an arm64 Image.
    Given(&'a [u8]),
}

impl Guest<'_> {
    /// The binary of the program, if it is one of ours.
    const fn binary(&self) -> Option<&'static str> {
        match self {
            Self::Ours(Program::Measuring) | Self::Bare(Program::Measuring) => {
                Some("guest-measuring")
            }
            Self::Ours(Program::Trials) | Self::Bare(Program::Trials) => Some("guest-trials"),
            Self::Given(_) => None,
        }
    }

    /// What images are for, for which others are not: the board, and which guest.
    fn kind(&self, board: &str) -> String {
        match self {
            Self::Ours(Program::Measuring) => board.to_owned(),
            Self::Ours(Program::Trials) => format!("{board}-trials"),
            Self::Bare(program) => format!("{}-bare", Self::Ours(*program).kind(board)),
            Self::Given(_) => format!("{board}-given"),
        }
    }
}

/// The two files that can be booted.
#[derive(Debug)]
pub struct Images {
    /// Hypervisor and guest.
    pub packed: PathBuf,
    /// The guest alone.
    pub guest: PathBuf,
}

/// What was built. All of it stays as it is while this is there, whatever others build.
#[derive(Debug)]
pub struct Built {
    /// What is booted.
    pub images: Images,
    /// The hypervisor with its symbols.
    pub hypervisor: PathBuf,
    /// Our guest with its symbols; `None` if another one was packed.
    pub guest: Option<PathBuf>,
    _kept: Kept,
}

/// Builds, flattens and packs.
pub fn build(board: &str, guest: Guest) -> Result<Built> {
    toolchain::ensure_target()?;
    let locked = lock()?;
    let mut binaries = vec![(HYPERVISOR, HYPERVISOR)];
    binaries.extend(guest.binary().map(|binary| (GUEST, binary)));
    cargo_build(&binaries, matches!(guest, Guest::Bare(_)))?;
    let hypervisor = elf(HYPERVISOR)?;
    let ours = guest.binary().map(elf).transpose()?;
    drop(locked);
    let flat = match (&ours, guest) {
        (Some(ours), _) => flattened(GUEST, ours)?,
        (None, Guest::Given(image)) => image.to_vec(),
        (None, Guest::Ours(_) | Guest::Bare(_)) => bail!("the guest was not built"),
    };
    let packed = pack(&flattened(HYPERVISOR, &hypervisor)?, &flat)?;
    let mut files = vec![
        (PACKED, &*packed),
        ("guest.img", &*flat),
        ("hypervisor.elf", &*hypervisor),
    ];
    files.extend(ours.as_deref().map(|ours| ("guest.elf", ours)));
    let kept = store::keep(&folder(), &guest.kind(board), &files)?;
    let at = |name: &str| kept.path.join(name);
    Ok(Built {
        images: Images {
            packed: at(PACKED),
            guest: at("guest.img"),
        },
        hypervisor: at("hypervisor.elf"),
        guest: ours.is_some().then(|| at("guest.elf")),
        _kept: kept,
    })
}

/// The kernel that stands for any other in tests, as it is given: an arm64 Image.
pub fn test_kernel() -> Result<Vec<u8>> {
    alone(TEST_KERNEL)
}

/// The firmware that leaves behind all that it may, for tests.
pub fn dirty_firmware() -> Result<Vec<u8>> {
    alone(DIRTY_FIRMWARE)
}

/// The one binary of `package`, flattened.
fn alone(package: &str) -> Result<Vec<u8>> {
    toolchain::ensure_target()?;
    let locked = lock()?;
    cargo_build(&[(package, package)], false)?;
    let built = elf(package)?;
    drop(locked);
    flattened(package, &built)
}

/// Builds, and leaves the packed image under a name that stays the same.
pub fn build_for_others(board: &str, guest: Guest) -> Result<PathBuf> {
    let built = build(board, guest)?;
    let image = fs::read(&built.images.packed)?;
    let path = folder().join(format!("rouse-{}.img", guest.kind(board)));
    Output::claim("build", &path)?.write_bytes(&image)?;
    Ok(path)
}

/// Where images are.
fn folder() -> PathBuf {
    places::target().join("image")
}

/// Keeps other runs from building something else before what was built is read.
fn lock() -> Result<File> {
    let path = folder().join("lock");
    let shown = || format!("{} can't be locked", path.display());
    fs::create_dir_all(folder()).with_context(shown)?;
    let file = File::create(&path).with_context(shown)?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        note!("waiting for another run that is building");
        file.lock().with_context(shown)?;
    }
    Ok(file)
}

/// A directory of their own: Cargo locks the one that runs this program.
fn directory() -> PathBuf {
    places::target().join("image-build")
}

/// The ELF file of a binary.
fn elf(binary: &str) -> Result<Vec<u8>> {
    let directory = directory().join(toolchain::TARGET);
    let path = directory.join(PROFILE).join(binary);
    fs::read(&path).with_context(|| {
        format!(
            "{} was not built; a package must have the binary {binary}",
            path.display()
        )
    })
}

fn flattened(package: &str, elf: &[u8]) -> Result<Vec<u8>> {
    flatten(elf).with_context(|| format!("the image of {package}"))
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

/// Builds binaries, each of its package, `bare` of features that can be left out.
fn cargo_build(binaries: &[(&str, &str)], bare: bool) -> Result<()> {
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
        .args(bare.then_some("--no-default-features"))
        .args(
            binaries
                .iter()
                .flat_map(|(package, binary)| ["--package", package, "--bin", binary]),
        )
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
            note!("{line}");
        }
    }
    if !cargo.wait()?.success() {
        bail!("the images don't build; what cargo said is above");
    }
    Ok(())
}
