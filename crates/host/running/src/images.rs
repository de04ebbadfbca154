// SPDX-License-Identifier: MIT OR Apache-2.0
//! Building the images with Cargo: the hypervisor, and the program of the guest that the
//! boot arguments ask for.

mod cargo;
mod contents;
mod flags;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};

use plan::{Atomics, Program, Under};
use vmm::archive;
use wire::Source;

use self::contents::Sources;
use crate::guest_kernel::{Given, Initrd};
use crate::kvm::Host;
use crate::pack::{Parts, flatten, pack};
use crate::xen::Xen;
use providing::toolchain;
use shell::once::Once;
use shell::output::Output;
use shell::processor_time::Account;
use shell::store::{self, Kept};
use shell::terminal::note;
use shell::{files, places};

/// Cargo's profile of images.
const PROFILE: &str = "image";
const HYPERVISOR: &str = "hypervisor";
const GUEST: &str = "guest-kernel-shim";
const TEST_KERNEL: &str = "test-kernel";
const RECORDER: &str = "recorder";
const MONITOR: &str = "rouse-kvm";
const ON_LINUX: &str = "linux";
const ON_LINUX_PROGRAM: &str = "rouse-linux";
const DIRTY_FIRMWARE: &str = "dirty-firmware";
/// Name of the packed image's file.
const PACKED: &str = "rouse.img";
/// Name of the file of another kernel's initial RAM disk.
const INITRD: &str = "initrd";

/// The guest that is packed after the hypervisor.
#[derive(Clone, Copy, Debug)]
pub enum Guest<'a> {
    /// A program of our own.
    Ours(Program),
    /// Another kernel, as it is given: an arm64 Image.
    Given(&'a Given),
}

impl Guest<'_> {
    /// Whose text its output is.
    pub const fn source(&self) -> Source {
        match self {
            Self::Ours(_) => Source::Ours,
            Self::Given(Given {
                initrd: Some(Initrd::Measuring),
                ..
            }) => Source::Program,
            Self::Given(_) => Source::Foreign,
        }
    }

    /// The binary of the program, if it is one of ours.
    const fn binary(&self) -> Option<&'static str> {
        match self {
            Self::Ours(Program::Measuring) => Some("guest-measuring"),
            Self::Ours(Program::Trials) => Some("guest-trials"),
            Self::Given(_) => None,
        }
    }

    /// Name of the board and the guest that images are for.
    fn kind(&self, board: &str) -> String {
        match self {
            Self::Ours(Program::Measuring) => board.to_owned(),
            Self::Ours(Program::Trials) => format!("{board}-trials"),
            Self::Given(_) => format!("{board}-given"),
        }
    }
}

/// An image of the guest.
#[derive(Debug)]
pub struct GuestFiles {
    /// Image for the bare machine.
    pub image: PathBuf,
    /// Its ELF file with symbols, if it is ours.
    pub elf: Option<PathBuf>,
}

/// Files that were built. All of them stay as they are while this is there, whatever others build.
#[derive(Debug)]
pub struct Built {
    /// Image to boot: the hypervisor with all images of the guest.
    pub packed: PathBuf,
    /// The hypervisor with its symbols.
    pub hypervisor: PathBuf,
    /// The image that every CPU can run.
    llsc: GuestFiles,
    /// The one with LSE atomics; another kernel is what it is.
    lse: Option<GuestFiles>,
    /// Another kernel's initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// KVM's host, where there are boots under it.
    pub host: Option<Host>,
    /// Xen, where there are boots under it.
    pub xen: Option<Xen>,
    _kept: Kept,
}

impl Built {
    /// The guest that is compiled to these instructions, or the other kernel.
    pub fn guest(&self, atomics: Atomics) -> &GuestFiles {
        match (atomics, &self.lse) {
            (Atomics::Lse, Some(lse)) => lse,
            (Atomics::Lse, None) | (Atomics::Llsc, _) => &self.llsc,
        }
    }

    /// The hypervisor of others that `under` is, with its version, where it was provided.
    pub fn below(&self, under: Under) -> Option<&str> {
        match under {
            Under::None | Under::Rouse => None,
            Under::Xen => Some(&self.xen.as_ref()?.told),
            Under::Kvm | Under::KvmNvhe | Under::KvmProtected => Some(&self.host.as_ref()?.told),
        }
    }

    /// Whether the guest is one of ours.
    pub const fn is_ours(&self) -> bool {
        self.llsc.elf.is_some()
    }
}

/// Builds, flattens and packs.
pub fn build(board: &str, guest: Guest) -> Result<Built> {
    let compiled = compiled(guest.binary())?;
    let (llsc, lse) = (compiled.llsc.as_ref(), compiled.lse.as_ref());
    let flat = match (llsc, guest) {
        (Some(llsc), _) => &llsc.flat,
        (None, Guest::Given(given)) => &given.image,
        (None, Guest::Ours(_)) => bail!("the guest was not built"),
    };
    let flat_lse = lse.map(|lse| lse.flat.as_slice());
    let program;
    let initrd = match guest {
        Guest::Given(Given {
            initrd: Some(Initrd::Given(initrd)),
            ..
        }) => Some(initrd.as_slice()),
        Guest::Given(Given {
            initrd: Some(Initrd::Measuring),
            ..
        }) => {
            program = archive::alone(&on_linux()?);
            Some(program.as_slice())
        }
        Guest::Given(Given { initrd: None, .. }) | Guest::Ours(_) => None,
    };
    let parts = Parts {
        guest: flat,
        lse: flat_lse,
        initrd,
        source: guest.source(),
    };
    let packed = pack(&compiled.hypervisor.flat, parts)?;
    let files = [
        (PACKED, Some(packed.as_slice())),
        ("hypervisor.elf", Some(compiled.hypervisor.elf.as_slice())),
        ("guest.img", Some(flat)),
        ("guest.elf", llsc.map(|llsc| llsc.elf.as_slice())),
        ("guest-lse.img", flat_lse),
        ("guest-lse.elf", lse.map(|lse| lse.elf.as_slice())),
        (INITRD, initrd),
    ];
    let files = files.into_iter();
    let files: Vec<_> = files
        .filter_map(|(name, bytes)| Some((name, bytes?)))
        .collect();
    let kept = store::keep(&folder(), &guest.kind(board), &files)?;
    let at = |name: &str| kept.path.join(name);
    Ok(Built {
        packed: at(PACKED),
        hypervisor: at("hypervisor.elf"),
        llsc: GuestFiles {
            image: at("guest.img"),
            elf: llsc.is_some().then(|| at("guest.elf")),
        },
        lse: lse.is_some().then(|| GuestFiles {
            image: at("guest-lse.img"),
            elf: Some(at("guest-lse.elf")),
        }),
        initrd: initrd.is_some().then(|| at(INITRD)),
        host: None,
        xen: None,
        _kept: kept,
    })
}

/// A program as the compiler leaves it, and as it lies in memory.
#[derive(Debug)]
struct Compiled {
    elf: Vec<u8>,
    flat: Vec<u8>,
}

impl Compiled {
    /// The `binary` of `package` that was built last.
    fn read(package: &str, binary: &str, atomics: Atomics) -> Result<Self> {
        let elf = elf(binary, atomics)?;
        let flat = flatten(&elf).with_context(|| format!("the image of {package}"))?;
        Ok(Self { elf, flat })
    }
}

/// The hypervisor, and the guest for each kind of atomic instructions, if it is ours.
#[derive(Debug)]
struct Pair {
    hypervisor: Compiled,
    llsc: Option<Compiled>,
    lse: Option<Compiled>,
}

/// Compiles the hypervisor and the guest's `binary`.
fn compiled(binary: Option<&'static str>) -> Result<Arc<Pair>> {
    static PAIRS: Once<Option<&str>, Pair> = Once::new();
    PAIRS.get(binary, || {
        toolchain::ensure_target(toolchain::TARGET)?;
        building(|| compile(binary))
    })
}

fn compile(binary: Option<&'static str>) -> Result<Pair> {
    let mut binaries = vec![(HYPERVISOR, HYPERVISOR)];
    binaries.extend(binary.map(|binary| (GUEST, binary)));
    // At the same time: most of it is the last step, which is done on one CPU.
    thread::scope(|scope| {
        let ours = &binaries[1..];
        let account = Account::here();
        let lse = scope.spawn(move || account.charge(|| cargo_build(ours, Atomics::Lse)));
        cargo_build(&binaries, Atomics::Llsc)?;
        lse.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let guest = |atomics| {
        let read = binary.map(|binary| Compiled::read(GUEST, binary, atomics));
        read.transpose()
    };
    Ok(Pair {
        hypervisor: Compiled::read(HYPERVISOR, HYPERVISOR, Atomics::Llsc)?,
        llsc: guest(Atomics::Llsc)?,
        lse: guest(Atomics::Lse)?,
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
fn alone(package: &'static str) -> Result<Vec<u8>> {
    static ALONE: Once<&str, Compiled> = Once::new();
    let compiled = ALONE.get(package, || {
        toolchain::ensure_target(toolchain::TARGET)?;
        building(|| {
            cargo_build(&[(package, package)], Atomics::Llsc)?;
            Compiled::read(package, package, Atomics::Llsc)
        })
    })?;
    Ok(compiled.flat.clone())
}

/// Builds the program that runs guests under KVM, with the virtual machine monitor in it: a static program of arm64
/// Linux.
pub fn monitor() -> Result<Vec<u8>> {
    linux_program(MONITOR, MONITOR)
}

/// The program that measures Linux from its user space.
pub fn on_linux() -> Result<Vec<u8>> {
    linux_program(ON_LINUX, ON_LINUX_PROGRAM)
}

/// The static program `binary` of `package`.
fn linux_program(package: &str, binary: &str) -> Result<Vec<u8>> {
    toolchain::ensure_target(toolchain::LINUX)?;
    let arguments = ["--release", "--target", toolchain::LINUX];
    let package = ["--package", package, "--bin", binary];
    let directory = directory(Atomics::Llsc);
    let flags = flags::of_linux();
    let config = ["--config", &*flags];
    let path = directory.join(toolchain::LINUX).join("release");
    let path = path.join(binary);
    let arguments = [&arguments[..], &package[..], &config[..]].concat();
    building(|| {
        cargo::build(&directory, &arguments, "")?;
        fs::read(&path).with_context(|| format!("{} was not built", path.display()))
    })
}

/// Builds, and leaves the packed image under a name that stays the same.
pub fn build_for_others(board: &str, guest: Guest) -> Result<PathBuf> {
    let built = build(board, guest)?;
    let image = fs::read(&built.packed)?;
    let path = folder().join(format!("rouse-{}.img", guest.kind(board)));
    Output::claim("build", &path)?.write_bytes(&image)?;
    Ok(path)
}

/// Where images are.
fn folder() -> PathBuf {
    places::target().join("image")
}

/// Builds the plugin that records, a library of the emulator's host.
pub fn recorder() -> Result<PathBuf> {
    let (directory, arguments) = (recorder_folder(), ["--release", "--package", RECORDER]);
    building(|| cargo::build(&directory, &arguments, ""))?;
    Ok(directory.join(format!("release/{DLL_PREFIX}{RECORDER}{DLL_SUFFIX}")))
}

fn recorder_folder() -> PathBuf {
    places::target().join(RECORDER)
}

/// Builds from the sources as they are, and reads what was built before another run builds something else.
pub fn building<T>(build: impl FnOnce() -> Result<T>) -> Result<T> {
    let wait = || note!("waiting for another run that is building");
    let _locked = files::lock(&folder().join("lock"), wait)?;
    let folders = [
        directory(Atomics::Llsc),
        directory(Atomics::Lse),
        recorder_folder(),
    ];
    let given = Sources::to(places::root(), folder().join("contents.json"), &folders)?;
    let built = build();
    given.end()?;
    built
}

/// Directories of their own: Cargo locks the one that runs this program, and the images
/// for both kinds of atomic instructions are built at the same time.
fn directory(atomics: Atomics) -> PathBuf {
    places::target().join(match atomics {
        Atomics::Llsc => "image-build",
        Atomics::Lse => "image-build-lse",
    })
}

/// The ELF file of a binary.
fn elf(binary: &str, atomics: Atomics) -> Result<Vec<u8>> {
    let directory = directory(atomics).join(toolchain::TARGET);
    let path = directory.join(PROFILE).join(binary);
    fs::read(&path).with_context(|| {
        format!(
            "{} was not built; a package must have the binary {binary}",
            path.display()
        )
    })
}

/// Builds binaries, each of its package.
fn cargo_build(binaries: &[(&str, &str)], atomics: Atomics) -> Result<()> {
    if binaries.is_empty() {
        return Ok(());
    }
    let flags = flags::of_images(atomics);
    let mut arguments = vec!["--profile", PROFILE, "--target", toolchain::TARGET];
    arguments.extend(["--config", &flags]);
    let packages = binaries.iter();
    arguments
        .extend(packages.flat_map(|&(package, binary)| ["--package", package, "--bin", binary]));
    let note = match atomics {
        Atomics::Llsc => "",
        Atomics::Lse => " (atomics lse)",
    };
    cargo::build(&directory(atomics), &arguments, note)
}
