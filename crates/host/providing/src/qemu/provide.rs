// SPDX-License-Identifier: MIT OR Apache-2.0
//! Provides an emulator if the system has none, or only one that is too old.
//!
//! On Debian and its derivatives on x86-64, this module fetches Debian's own packages ([`apt`]), and unpacks them below
//! `target/tools/qemu` together with their C library.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Emulator, FLOOR, PROGRAM, VARIABLE};
use crate::apt::{self, Remedy};
use crate::manager::{self, Tool};
use crate::toolchain::output;
use shell::places;
use shell::terminal::step;

/// Remedy for a missing emulator.
const REMEDY: Remedy = Remedy {
    missing: PROGRAM,
    instead: "set ROUSE_QEMU=/path/to/qemu-system-aarch64",
};
/// Packages, all of a version that gives the documents' counts. Change the version in a commit of its own that states
/// the counts before and after the change.
const PACKAGES: [&str; 3] = [
    "qemu-system-arm/trixie-backports",
    "qemu-system-common/trixie-backports",
    "qemu-system-data/trixie-backports",
];
const VERSION: &str = "1:11.1.3+ds-2~bpo13+1";
const EFI: (&str, &str) = ("qemu-efi-aarch64", "2025.02-8+deb13u1");

fn install_folder() -> PathBuf {
    places::target().join("tools/qemu")
}

/// Returns the folder of a provided emulator that corresponds to the folder `system` of an installed one.
pub fn folder(system: &str) -> PathBuf {
    install_folder().join(system.trim_start_matches('/'))
}

/// Returns the emulator that an earlier run has provided.
pub fn find_provided() -> Option<Emulator> {
    let prefix = install_folder();
    let libraries = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib/x86_64-linux-gnu/pulseaudio",
    ];
    let path = libraries.map(|folder| prefix.join(folder).into_os_string());
    // The emulator runs with its own C library, so the age of the system's C library does not matter.
    let arguments: Vec<OsString> = vec![
        "--library-path".into(),
        path.join(":".as_ref()),
        prefix.join("usr/bin").join(PROGRAM).into(),
        "-L".into(),
        prefix.join("usr/share/qemu").into(),
    ];
    let loader = prefix.join("usr/lib64/ld-linux-x86-64.so.2");
    Emulator::probe(loader, arguments).filter(|emulator| emulator.version >= FLOOR)
}

/// Returns the reason why no emulator can be provided here, and the alternative.
pub fn obstacle() -> Option<String> {
    let x86_64_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if x86_64_linux && apt::usable() {
        return None;
    }
    // This computer has Debian's package manager, but not Debian's keys.
    let way = match x86_64_linux && output("apt-get", &["--version"]).is_some() {
        true => "apt-get install debian-archive-keyring (QEMU is then fetched)".into(),
        false => manager::install(Tool::Qemu)
            .unwrap_or_else(|| "install it with the system's packages".into()),
    };
    Some(format!(
        "{way}; {FLOOR} or newer is needed: or build it (https://www.qemu.org/download) and set {VARIABLE}=/path/to/{PROGRAM}"
    ))
}

/// Fetches, checks and unpacks an emulator.
pub fn provide() -> Result<Emulator> {
    step!("{PROGRAM} {FLOOR} or newer is missing: providing it below target/tools (once)");
    let tools = apt::Tools::lock()?;
    // Another run may have provided an emulator while this one waited.
    if let Some(emulator) = find_provided() {
        return Ok(emulator);
    }
    let apt = tools.apt(None, &REMEDY)?;
    let install = [
        "-y",
        "--no-install-recommends",
        "--download-only",
        "install",
    ];
    let mut packages = Vec::new();
    for (name, version) in PACKAGES
        .map(|name| (name, VERSION))
        .into_iter()
        .chain([EFI])
    {
        packages.push(apt.find_pinned(name, version)?);
    }
    let packages = packages.iter().map(String::as_str);
    let arguments: Vec<_> = install.into_iter().chain(packages).collect();
    apt.run("downloading QEMU", &arguments)?;
    apt.unpack(&install_folder())?;
    find_provided().with_context(|| {
        format!("the {PROGRAM} below target/tools does not start; set {VARIABLE} to one that does")
    })
}
