// SPDX-License-Identifier: MIT OR Apache-2.0
//! U-Boot for QEMU's `virt`, from Debian: the boot loader of most boards. Like UEFI firmware, it boots from a disk.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::apt::Remedy;
use shell::places;

const PACKAGE: &str = "u-boot-qemu";
const VERSION: &str = "2025.01-3+deb13u1";
/// U-Boot's program, which starts with the MMU off, at any address.
const FILE: &str = "usr/lib/u-boot/qemu_arm64/u-boot.bin";
/// Remedy if the boot loader is missing.
const REMEDY: Remedy = Remedy {
    missing: "U-Boot",
    instead: "use --board virt-uefi",
};

fn install_folder() -> PathBuf {
    places::target().join("tools/u-boot")
}

/// Returns the program's file, if an earlier run has provided it.
fn find_provided() -> Option<PathBuf> {
    Some(install_folder().join(FILE)).filter(|file| file.is_file())
}

/// Returns the program's file. Fetches, checks and unpacks it, unless an earlier run has done so.
pub fn provide() -> Result<PathBuf> {
    REMEDY.provide_once("", find_provided, |tools| {
        let apt = tools.apt(None, &REMEDY)?;
        let package = apt.find_pinned(PACKAGE, VERSION)?;
        apt.run("downloading U-Boot", &["download", &package])?;
        apt.unpack(&install_folder())?;
        find_provided().with_context(|| format!("{PACKAGE} has no {FILE}; {}", REMEDY.instead))
    })
}
