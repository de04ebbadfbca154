// SPDX-License-Identifier: MIT OR Apache-2.0
//! U-Boot for QEMU's `virt`, from Debian: the boot loader of most boards. Like UEFI firmware, it boots from a disk.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use memchr::memmem;

use crate::apt::Remedy;
use shell::terminal::note;
use shell::{files, partial_files, places};

const PACKAGE: &str = "u-boot-qemu";
const VERSION: &str = "2025.01-3+deb13u1";
/// U-Boot's program, which starts with the MMU off, at any address.
const FILE: &str = "usr/lib/u-boot/qemu_arm64/u-boot.bin";
/// A copy of the program that does not wait for a key, if its setting is known.
const AT_ONCE: &str = "u-boot-at-once.bin";
/// The variable of U-Boot's built-in environment with the number of seconds to wait for a key, and its replacement. In
/// the emulator's instruction mode, these seconds are billions of instructions, and take longer than the rest of a boot.
const WAITS: &[u8] = b"\0bootdelay=2\0";
const AT_ONCE_WAITS: &[u8] = b"\0bootdelay=0\0";
/// Remedy if the boot loader is missing.
const REMEDY: Remedy = Remedy {
    missing: "U-Boot",
    instead: "use --board virt-uefi",
};

fn install_folder() -> PathBuf {
    places::target().join("tools/u-boot")
}

/// Returns the changed program's file, if an earlier run has provided it.
fn find_provided() -> Option<PathBuf> {
    Some(install_folder().join(AT_ONCE)).filter(|file| file.is_file())
}

/// Sets the wait for a key to zero in U-Boot's program. Returns whether the program has exactly one such setting; any
/// other program stays as it is.
fn remove_wait(program: &mut [u8]) -> bool {
    let mut found = memmem::find_iter(program, WAITS);
    let Some(at) = found.next().filter(|_| found.next().is_none()) else {
        return false;
    };
    program[at..at + WAITS.len()].copy_from_slice(AT_ONCE_WAITS);
    true
}

/// Returns the file of a program that boots at once. Fetches, checks and unpacks it, unless an earlier run has done so.
pub fn provide() -> Result<PathBuf> {
    REMEDY.provide_once("", find_provided, |tools| {
        let apt = tools.apt(None, &REMEDY)?;
        let package = apt.find_pinned(PACKAGE, VERSION)?;
        apt.run("downloading U-Boot", &["download", &package])?;
        apt.unpack(&install_folder())?;
        let missing = || format!("{PACKAGE} has no {FILE}; {}", REMEDY.instead);
        let mut program = fs::read(install_folder().join(FILE)).with_context(missing)?;
        if !remove_wait(&mut program) {
            note!("{package} waits for a key at each boot, which takes a minute: its setting is unknown");
        }
        let at_once = install_folder().join(AT_ONCE);
        let written = partial_files::write(&at_once, &program, 0o644);
        written.map_err(|error| files::refused(&at_once, "written", &error))?;
        Ok(at_once)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_setting_is_changed() {
        let mut program = b"code\0bootdelay=2\0baudrate=115200\0".to_vec();
        assert!(remove_wait(&mut program));
        assert_eq!(program, b"code\0bootdelay=0\0baudrate=115200\0");
        for kept in [
            &b"code\0bootdelay=5\0"[..],
            b"code\0bootdelay=20\0",
            b"\0bootdelay=2\0code\0bootdelay=2\0",
        ] {
            let mut program = kept.to_vec();
            assert!(!remove_wait(&mut program));
            assert_eq!(program, kept);
        }
    }
}
