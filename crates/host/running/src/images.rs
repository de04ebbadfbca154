// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the images with Cargo: the hypervisor, and the program of the guest that the
//! boot arguments select.

mod compile;
mod flags;

pub use compile::{dirty_firmware, monitor, on_linux, recorder, test_kernel};

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use plan::{Atomics, Planted, Program, Under, Word};
use vmm::archive;
use wire::Source;

use crate::kvm::Host;
use crate::xen::Xen;
use compile::{PLANTED, PackageBinary, Set, compile_once};
use guests::kernel::{Given, Initrd};
use guests::pack::{Parts, pack};
use providing::bao::Bao;
use results::Build;
use shell::digest::sum;
use shell::output::Output;
use shell::places;
use shell::store::{self, Kept};

const GUEST: &str = "guest-kernel-shim";
const TRIALS: &str = "guest-trials";
/// File name of the packed image.
const PACKED: &str = "rouse.img";
/// File name of another kernel's initial RAM disk.
const INITRD: &str = "initrd";

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

/// Files of our guest for one kind of atomics.
#[derive(Debug)]
struct OurFiles {
    /// Image for the bare machine.
    image: PathBuf,
    /// ELF file with symbols.
    elf: PathBuf,
}

/// The built files. The files stay unchanged while this value exists, even if another run builds.
#[derive(Debug)]
pub struct Built {
    /// Image to boot: the hypervisor with the images of the guest.
    pub packed: PathBuf,
    /// The hypervisor with its symbols.
    pub hypervisor: PathBuf,
    /// The programs in memory.
    compiled: Set,
    /// Our guest for each kind of atomics that was needed.
    ours: BTreeMap<Atomics, OurFiles>,
    /// The image of another kernel.
    given: Option<PathBuf>,
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
    /// Returns the image of our guest, compiled for `atomics`, or of the user's kernel.
    pub fn guest_image(&self, atomics: Atomics) -> Result<&PathBuf> {
        let ours = || self.ours.get(&atomics).map(|files| &files.image);
        let image = self.given.as_ref().or_else(ours);
        image.with_context(|| format!("no guest was built for atomics {atomics}"))
    }

    /// Returns the ELF file with symbols of our guest, compiled for `atomics`. `None` if the guest is the user's
    /// kernel.
    pub fn guest_elf(&self, atomics: Atomics) -> Option<&PathBuf> {
        self.ours.get(&atomics).map(|files| &files.elf)
    }

    /// Completes `build` with the hashes of the images.
    pub fn identify(&self, build: Build) -> Result<Build> {
        let mut rest = self.compiled.hypervisor.flat.clone();
        for path in [&self.given, &self.initrd].into_iter().flatten() {
            rest.extend(fs::read(path).with_context(|| path.display().to_string())?);
        }
        let guests = self.compiled.guests.iter();
        let guests = guests.map(|(atomics, guest)| (atomics.to_string(), sum(&guest.flat)));
        Ok(Build {
            image: sum(&rest),
            guests: guests.collect(),
            ..build
        })
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
        self.given.is_none()
    }
}

/// Builds, flattens and packs images for measurements, with our guest for every kind of atomics.
pub fn build(board: &str, guest: Guest) -> Result<Built> {
    build_planted(board, guest, &every_kind(), Planted::NOTHING)
}

/// Returns every kind of atomics, for images that run on any machine.
pub fn every_kind() -> BTreeSet<Atomics> {
    Atomics::ALL.iter().copied().collect()
}

/// Like [`build`], but builds the `planted` images for tests, and our guest only for the kinds of atomics that are
/// `needed`.
pub fn build_planted(
    board: &str,
    guest: Guest,
    needed: &BTreeSet<Atomics>,
    planted: Planted,
) -> Result<Built> {
    let compiled = compile_once(guest.binary(), needed, planted)?;
    let llsc = compiled.guests.get(&Atomics::Llsc);
    let lse = compiled.guests.get(&Atomics::Lse);
    let given = match guest {
        Guest::Given(given) => Some(given.image.as_slice()),
        Guest::Ours(_) => None,
    };
    let flat = given.or_else(|| llsc.map(|llsc| llsc.flat.as_slice()));
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
        llsc: flat,
        lse: flat_lse,
        initrd,
        source: guest.source(),
    };
    let packed = pack(&compiled.hypervisor.flat, parts)?;
    let files = [
        (PACKED, Some(packed.as_slice())),
        ("hypervisor.elf", Some(compiled.hypervisor.elf.as_slice())),
        ("guest.img", flat),
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
    let of = |atomics| {
        let [image, elf] = match atomics {
            Atomics::Llsc => ["guest.img", "guest.elf"],
            Atomics::Lse => ["guest-lse.img", "guest-lse.elf"],
        };
        let files = OurFiles {
            image: at(image),
            elf: at(elf),
        };
        (atomics, files)
    };
    Ok(Built {
        packed: at(PACKED),
        hypervisor: at("hypervisor.elf"),
        ours: compiled.guests.keys().copied().map(of).collect(),
        given: given.map(|_| at("guest.img")),
        compiled,
        initrd: initrd.is_some().then(|| at(INITRD)),
        program: program.is_some().then(|| at("program.elf")),
        host: None,
        bao: None,
        xen: None,
        _kept: kept,
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
