// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs with Cargo, each once in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::iter;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use building::{Build, Sources};
use guests::pack::flatten;
use plan::{Atomics, Planted};
use providing::toolchain;
use shell::once::Once;
use shell::processor_time::Account;
use shell::terminal::step;
use shell::{files, places};

use super::{flags, folder};

/// Cargo's profile of images.
const PROFILE: &str = "image";
const TEST_KERNEL: &str = "test-kernel";
const RECORDER: &str = "recorder";
const MONITOR: &str = "rouse-kvm";
const ON_LINUX: &str = "linux";
const ON_LINUX_PROGRAM: &str = "rouse-linux";
const DIRTY_FIRMWARE: &str = "dirty-firmware";
const HYPERVISOR: &str = "hypervisor";
/// The feature that adds code for tests to both images. Both the hypervisor's and the guest's package have this
/// feature.
pub const PLANTED: &str = "planted";

/// A package, and its binary.
pub type PackageBinary = (&'static str, &'static str);

/// A program's ELF file, and its contents in memory.
#[derive(Debug)]
pub struct Compiled {
    pub elf: Vec<u8>,
    pub flat: Vec<u8>,
}

impl Compiled {
    /// Reads the latest build of `binary` of `package`.
    fn read_built(package: &str, binary: &str, atomics: Atomics) -> Result<Self> {
        let elf = read_elf(binary, atomics)?;
        let flat = flatten(&elf).with_context(|| format!("the image of {package}"))?;
        Ok(Self { elf, flat })
    }
}

/// The hypervisor, and our own guest for each needed kind of atomic instructions.
#[derive(Debug)]
pub struct Set {
    pub hypervisor: Arc<Compiled>,
    pub guests: BTreeMap<Atomics, Arc<Compiled>>,
}

/// Compiles the hypervisor, and the `guest` for the kinds of atomic instructions that are `needed`. Each is compiled
/// once, whatever other images are needed later.
pub fn compile_once(
    guest: Option<PackageBinary>,
    needed: &BTreeSet<Atomics>,
    planted: Planted,
) -> Result<Set> {
    static COMPILED: Once<(Atomics, Binary), Compiled> = Once::new();
    let hypervisor = Binary {
        package: HYPERVISOR,
        name: HYPERVISOR,
        planted: planted.hypervisor,
    };
    let guest = guest.map(|(package, name)| Binary {
        package,
        name,
        planted: planted.guest,
    });
    let guests = guest
        .into_iter()
        .flat_map(|guest| needed.iter().map(move |&atomics| (atomics, guest)));
    let keys: Vec<_> = iter::once((Atomics::Llsc, hypervisor))
        .chain(guests)
        .collect();
    let mut compiled = COMPILED
        .get_all(&keys, |missing| {
            toolchain::ensure_target(toolchain::TARGET)?;
            building(|sources| compile(sources, missing))
        })?
        .into_iter();
    let hypervisor = compiled.next().context("the hypervisor was not compiled")?;
    let kinds = keys[1..].iter().map(|&(atomics, _)| atomics);
    Ok(Set {
        hypervisor,
        guests: kinds.zip(compiled).collect(),
    })
}

fn compile(sources: &Sources, binaries: &[(Atomics, Binary)]) -> Result<Vec<Compiled>> {
    let build = |of: Atomics| {
        let those = binaries.iter().filter(|(atomics, _)| *atomics == of);
        let those: Vec<_> = those.map(|&(_, binary)| binary).collect();
        cargo_build(sources, &those, of)
    };
    // Most of the time is spent in the last step, which uses one CPU, so the builds run in parallel.
    thread::scope(|scope| {
        let account = Account::of_this_thread();
        let lse = scope.spawn(move || account.charge(|| build(Atomics::Lse)));
        build(Atomics::Llsc)?;
        lse.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let read = |&(atomics, binary): &(Atomics, Binary)| {
        Compiled::read_built(binary.package, binary.name, atomics)
    };
    binaries.iter().map(read).collect()
}

/// Returns the arm64 Image that stands in for another kernel in tests.
pub fn test_kernel() -> Result<Vec<u8>> {
    only_binary(TEST_KERNEL)
}

/// Returns the firmware for tests, which can leave every state that firmware may leave.
pub fn dirty_firmware() -> Result<Vec<u8>> {
    only_binary(DIRTY_FIRMWARE)
}

/// Returns the only binary of `package`, flattened.
fn only_binary(package: &'static str) -> Result<Vec<u8>> {
    static ALONE: Once<&str, Compiled> = Once::new();
    let compiled = ALONE.get(package, || {
        toolchain::ensure_target(toolchain::TARGET)?;
        building(|sources| {
            let binary = Binary {
                package,
                name: package,
                planted: false,
            };
            cargo_build(sources, &[binary], Atomics::Llsc)?;
            Compiled::read_built(package, package, Atomics::Llsc)
        })
    })?;
    Ok(compiled.flat.clone())
}

/// Builds the program that runs guests under KVM and contains the virtual machine monitor: a static program for arm64
/// Linux.
pub fn monitor() -> Result<Vec<u8>> {
    linux_program(MONITOR, MONITOR)
}

/// Builds the program that measures Linux from its user space.
pub fn on_linux() -> Result<Vec<u8>> {
    linux_program(ON_LINUX, ON_LINUX_PROGRAM)
}

/// Builds the static program `binary` of `package`.
fn linux_program(package: &'static str, binary: &'static str) -> Result<Vec<u8>> {
    static PROGRAMS: Once<&str, Vec<u8>> = Once::new();
    let program = PROGRAMS.get(binary, || compile_linux_program(package, binary))?;
    Ok(program.to_vec())
}

fn compile_linux_program(package: &str, binary: &str) -> Result<Vec<u8>> {
    toolchain::ensure_target(toolchain::LINUX)?;
    let arguments = ["--release", "--target", toolchain::LINUX];
    let package = ["--package", package, "--bin", binary];
    let directory = build_folder(Atomics::Llsc);
    let flags = flags::flags_of_linux();
    let config = ["--config", &*flags];
    let path = directory.join(toolchain::LINUX).join("release");
    let path = path.join(binary);
    let arguments = [&arguments[..], &package[..], &config[..]].concat();
    building(|sources| {
        sources.build(&Build {
            directory: &directory,
            arguments: &arguments,
            programs: std::slice::from_ref(&path),
            note: "",
        })?;
        fs::read(&path).with_context(|| format!("{} was not built", path.display()))
    })
}

/// Builds the plugin that records. The plugin is a library for the emulator's host.
pub fn recorder() -> Result<PathBuf> {
    static BUILT: Once<(), ()> = Once::new();
    let directory = recorder_folder();
    let plugin = directory.join(format!("release/{DLL_PREFIX}{RECORDER}{DLL_SUFFIX}"));
    let build = Build {
        directory: &directory,
        arguments: &["--release", "--package", RECORDER],
        programs: std::slice::from_ref(&plugin),
        note: "",
    };
    BUILT.get((), || building(|sources| sources.build(&build)))?;
    Ok(plugin)
}

fn recorder_folder() -> PathBuf {
    places::target().join(RECORDER)
}

/// Calls `build`, which builds from the current sources and reads the results. Locks out other runs meanwhile, so that
/// they do not replace the results.
fn building<T>(build: impl FnOnce(&Sources) -> Result<T>) -> Result<T> {
    // Threads of this run wait for each other here, without the message about another run.
    static HERE: Mutex<()> = Mutex::new(());
    let _here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = || step!("waiting for another run that is building");
    let records = folder();
    let _locked = files::lock(&records.join("lock"), wait)?;
    let directories = [
        build_folder(Atomics::Llsc),
        build_folder(Atomics::Lse),
        recorder_folder(),
    ];
    let sources = Sources::new(places::root(), &records, &directories);
    let built = build(&sources);
    let recorded = sources.write_records();
    let built = built?;
    recorded.map(|()| built)
}

/// Returns the folder for builds with `atomics`. This folder differs from the folder that Cargo locks while it runs
/// this program. Each kind of atomic instructions has its own folder, because the images for the two kinds are built
/// in parallel.
fn build_folder(atomics: Atomics) -> PathBuf {
    places::target().join(match atomics {
        Atomics::Llsc => "image-build",
        Atomics::Lse => "image-build-lse",
    })
}

/// Returns the path of a binary's ELF file.
fn elf_path(binary: &str, atomics: Atomics) -> PathBuf {
    let directory = build_folder(atomics).join(toolchain::TARGET);
    directory.join(PROFILE).join(binary)
}

/// Returns the ELF file of a binary.
fn read_elf(binary: &str, atomics: Atomics) -> Result<Vec<u8>> {
    let path = elf_path(binary, atomics);
    fs::read(&path).with_context(|| {
        format!(
            "{} was not built; a package must have the binary {binary}",
            path.display()
        )
    })
}

/// A binary to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Binary {
    package: &'static str,
    name: &'static str,
    /// Whether the binary is built for tests. Cargo keeps both builds next to each other, with the same dependencies,
    /// and leaves the latest one under the binary's name.
    planted: bool,
}

/// Builds each of the binaries from its package.
fn cargo_build(sources: &Sources, binaries: &[Binary], atomics: Atomics) -> Result<()> {
    if binaries.is_empty() {
        return Ok(());
    }
    let flags = flags::flags_of_images(atomics);
    let mut arguments = vec!["--profile", PROFILE, "--target", toolchain::TARGET];
    arguments.extend(["--config", &flags]);
    arguments.extend(
        binaries
            .iter()
            .flat_map(|binary| ["--package", binary.package, "--bin", binary.name]),
    );
    let planted = binaries.iter().filter(|binary| binary.planted);
    let features: Vec<String> = planted
        .map(|binary| format!("{}/{PLANTED}", binary.package))
        .collect();
    arguments.extend(
        features
            .iter()
            .flat_map(|feature| ["--features", feature.as_str()]),
    );
    let note = match atomics {
        Atomics::Llsc => "",
        Atomics::Lse => " (atomics lse)",
    };
    let programs = binaries.iter().map(|binary| elf_path(binary.name, atomics));
    sources.build(&Build {
        directory: &build_folder(atomics),
        arguments: &arguments,
        programs: &programs.collect::<Vec<_>>(),
        note,
    })
}
