// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the images with Cargo: the hypervisor, and the program of the guest that the
//! boot arguments select.

mod flags;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use building::{Build, Sources};
use plan::{Atomics, Planted, Program, Under};
use vmm::archive;
use wire::Source;

use crate::kvm::Host;
use crate::xen::Xen;
use guests::kernel::{Given, Initrd};
use guests::pack::{Parts, flatten, pack};
use providing::bao::Bao;
use providing::toolchain;
use shell::once::Once;
use shell::output::Output;
use shell::processor_time::Account;
use shell::store::{self, Kept};
use shell::terminal::step;
use shell::{files, places};

/// Cargo's profile of images.
const PROFILE: &str = "image";
const HYPERVISOR: &str = "hypervisor";
const GUEST: &str = "guest-kernel-shim";
const TRIALS: &str = "guest-trials";
const TEST_KERNEL: &str = "test-kernel";
const RECORDER: &str = "recorder";
const MONITOR: &str = "rouse-kvm";
/// The feature that adds code for tests to both images. Both the hypervisor's and the guest's package have this
/// feature.
const PLANTED: &str = "planted";
const ON_LINUX: &str = "linux";
const ON_LINUX_PROGRAM: &str = "rouse-linux";
const DIRTY_FIRMWARE: &str = "dirty-firmware";
/// File name of the packed image.
const PACKED: &str = "rouse.img";
/// File name of another kernel's initial RAM disk.
const INITRD: &str = "initrd";

/// A package, and its binary.
type PackageBinary = (&'static str, &'static str);

/// The guest that is packed after the hypervisor.
#[derive(Clone, Copy, Debug)]
pub enum Guest<'a> {
    /// A program of our own.
    Ours(Program),
    /// Another kernel, an arm64 Image.
    Given(&'a Given),
}

impl Guest<'_> {
    /// Returns the source of the guest's output.
    pub const fn source(&self) -> Source {
        match self {
            Self::Ours(_) => Source::Ours,
            Self::Given(Given {
                initrd: Some(Initrd::Measuring(_)),
                ..
            }) => Source::Program,
            Self::Given(_) => Source::Foreign,
        }
    }

    /// Returns the binary of the program, if the program is ours.
    const fn binary(&self) -> Option<PackageBinary> {
        match self {
            Self::Ours(Program::Measuring) => Some((GUEST, "guest-measuring")),
            Self::Ours(Program::Trials) => Some((TRIALS, TRIALS)),
            Self::Given(_) => None,
        }
    }

    /// Returns the name of images for `board` with this guest.
    fn image_name(&self, board: &str) -> String {
        match self {
            Self::Ours(Program::Measuring) => board.to_owned(),
            Self::Ours(Program::Trials) => format!("{board}-trials"),
            Self::Given(_) => format!("{board}-given"),
        }
    }
}

#[derive(Debug)]
pub struct GuestFiles {
    /// Image for the bare machine.
    pub image: PathBuf,
    /// The guest's ELF file with symbols, if the guest is ours.
    pub elf: Option<PathBuf>,
}

/// The built files. The files stay unchanged while this value exists, even if another run builds.
#[derive(Debug)]
pub struct Built {
    /// Image to boot: the hypervisor with both images of the guest.
    pub packed: PathBuf,
    /// The hypervisor with its symbols.
    pub hypervisor: PathBuf,
    /// The image that every CPU can run, or another kernel.
    llsc: GuestFiles,
    /// The image of our own guest with LSE atomics.
    lse: Option<GuestFiles>,
    /// Another kernel's initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// The ELF file of the program in the RAM disk that measures Linux.
    pub program: Option<PathBuf>,
    /// KVM's host, for boots under KVM.
    pub host: Option<Host>,
    /// Bao, for boots under Bao.
    pub bao: Option<Bao>,
    /// Xen, for boots under Xen.
    pub xen: Option<Xen>,
    _kept: Kept,
}

impl Built {
    /// Returns our guest, compiled for `atomics`, or the user's kernel.
    pub fn guest(&self, atomics: Atomics) -> &GuestFiles {
        match (atomics, &self.lse) {
            (Atomics::Lse, Some(lse)) => lse,
            (Atomics::Lse, None) | (Atomics::Llsc, _) => &self.llsc,
        }
    }

    /// Returns the version of the hypervisor `under`, if it is not Rouse and was provided.
    pub fn version(&self, under: Under) -> Option<&str> {
        match under {
            Under::None | Under::Rouse => None,
            Under::Bao => Some(&self.bao.as_ref()?.told),
            Under::Xen => Some(&self.xen.as_ref()?.told),
            Under::Kvm | Under::KvmNvhe | Under::KvmProtected => Some(&self.host.as_ref()?.told),
        }
    }

    pub const fn is_ours(&self) -> bool {
        self.llsc.elf.is_some()
    }
}

/// Builds, flattens and packs images for measurements.
pub fn build(board: &str, guest: Guest) -> Result<Built> {
    build_planted(board, guest, Planted::NOTHING)
}

/// Like [`build`], but builds the `planted` images for tests.
pub fn build_planted(board: &str, guest: Guest, planted: Planted) -> Result<Built> {
    let compiled = compile_once(guest.binary(), planted)?;
    let (llsc, lse) = (compiled.llsc.as_ref(), compiled.lse.as_ref());
    let flat = match (llsc, guest) {
        (Some(llsc), _) => &llsc.flat,
        (None, Guest::Given(given)) => &given.image,
        (None, Guest::Ours(_)) => bail!("the guest was not built"),
    };
    let flat_lse = lse.map(|lse| lse.flat.as_slice());
    let measures = matches!(
        guest,
        Guest::Given(Given {
            initrd: Some(Initrd::Measuring(_)),
            ..
        })
    );
    let program = if measures { Some(on_linux()?) } else { None };
    let made = program.as_deref().map(|program| match guest {
        Guest::Given(Given {
            initrd: Some(Initrd::Measuring(files)),
            ..
        }) => archive::joined(files.clone(), &archive::of_program(program)),
        _ => archive::of_program(program),
    });
    let initrd = match guest {
        Guest::Given(Given {
            initrd: Some(Initrd::Given(initrd)),
            ..
        }) => Some(initrd.as_slice()),
        _ => made.as_deref(),
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
        ("program.elf", program.as_deref()),
    ];
    let files = files.into_iter();
    let files: Vec<_> = files
        .filter_map(|(name, bytes)| Some((name, bytes?)))
        .collect();
    let mut kind = guest.image_name(board);
    if planted != Planted::NOTHING {
        kind = format!("{kind}-{PLANTED}");
    }
    let kept = store::find_or_make(&folder(), &kind, &files)?;
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
        program: program.is_some().then(|| at("program.elf")),
        host: None,
        bao: None,
        xen: None,
        _kept: kept,
    })
}

/// A program's ELF file, and its contents in memory.
#[derive(Debug)]
struct Compiled {
    elf: Vec<u8>,
    flat: Vec<u8>,
}

impl Compiled {
    /// Reads the latest build of `binary` of `package`.
    fn read_built(package: &str, binary: &str, atomics: Atomics) -> Result<Self> {
        let elf = read_elf(binary, atomics)?;
        let flat = flatten(&elf).with_context(|| format!("the image of {package}"))?;
        Ok(Self { elf, flat })
    }
}

/// The hypervisor, and our own guest for each kind of atomic instructions.
#[derive(Debug)]
struct Pair {
    hypervisor: Compiled,
    llsc: Option<Compiled>,
    lse: Option<Compiled>,
}

/// Compiles the hypervisor and the `guest`.
fn compile_once(guest: Option<PackageBinary>, planted: Planted) -> Result<Arc<Pair>> {
    static PAIRS: Once<(Option<PackageBinary>, Planted), Pair> = Once::new();
    PAIRS.get((guest, planted), || {
        toolchain::ensure_target(toolchain::TARGET)?;
        building(|sources| compile(sources, guest, planted))
    })
}

fn compile(sources: &Sources, guest: Option<PackageBinary>, planted: Planted) -> Result<Pair> {
    let mut binaries = vec![Binary {
        package: HYPERVISOR,
        name: HYPERVISOR,
        planted: planted.hypervisor,
    }];
    binaries.extend(guest.map(|(package, name)| Binary {
        package,
        name,
        planted: planted.guest,
    }));
    // Most of the time is spent in the last step, which uses one CPU, so the builds run in parallel.
    thread::scope(|scope| {
        let ours = &binaries[1..];
        let account = Account::of_this_thread();
        let lse = scope.spawn(move || account.charge(|| cargo_build(sources, ours, Atomics::Lse)));
        cargo_build(sources, &binaries, Atomics::Llsc)?;
        lse.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let guest = |atomics| {
        let read = guest.map(|(package, binary)| Compiled::read_built(package, binary, atomics));
        read.transpose()
    };
    Ok(Pair {
        hypervisor: Compiled::read_built(HYPERVISOR, HYPERVISOR, Atomics::Llsc)?,
        llsc: guest(Atomics::Llsc)?,
        lse: guest(Atomics::Lse)?,
    })
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

/// Builds the images, and keeps the packed one under a fixed name that other programs can use.
pub fn build_for_others(board: &str, guest: Guest) -> Result<PathBuf> {
    let built = build(board, guest)?;
    let image = fs::read(&built.packed)?;
    let path = folder().join(format!("rouse-{}.img", guest.image_name(board)));
    Output::claim("build", &path)?.write_bytes(&image)?;
    Ok(path)
}

/// The folder of images.
fn folder() -> PathBuf {
    places::target().join("image")
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
    let sources = Sources::read(places::root(), &records, &directories)?;
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
#[derive(Clone, Copy, Debug)]
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
