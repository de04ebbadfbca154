// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the images with Cargo: the hypervisor, and the program of the guest that the
//! boot arguments select.

mod compile;
mod flags;

pub use compile::{dirty_firmware, monitor, on_linux, recorder, test_kernel};

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use plan::{Atomics, Planted, Program, Under};
use vmm::archive;
use wire::Source;

use crate::kvm::Host;
use crate::xen::Xen;
use compile::{PLANTED, PackageBinary, compile_once};
use guests::kernel::{Given, Initrd};
use guests::pack::{Parts, pack};
use providing::bao::Bao;
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
