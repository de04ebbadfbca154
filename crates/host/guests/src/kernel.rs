// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another kernel as the guest: its options, and its files.

pub mod debian;
pub mod image_check;
pub mod program;
pub mod unpack;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use plan::GuestStates;
use shell::failure::bad_input;

use crate::handover;

/// Largest size of a guest's file, in bytes. A larger file was probably named by mistake, and a size of 4 GiB would not
/// fit in the 32-bit fields of the PE header.
pub const MOST: usize = 1 << 30;

/// Options that name another kernel as the guest.
#[derive(Args, Clone, Debug, Default)]
pub struct GivenArgs {
    /// Guest to run instead of Rouse's own: an arm64 Image, plain or compressed (gzip, zstd, zboot); a test of
    /// kvm-unit-tests (arm/gic.elf); Debian's kernel, which is fetched: debian (the newest), debian:6.12, debian:7.3.4;
    /// or a source of the verb `kernel`, which is built with its patches: ~/linux, ~/linux@v6.12+FILE.patch,
    /// debian:6.12+FILE.patch. Two guests with a comma between them are measured alternately and compared (verb `run`).
    /// A guest's command line consists only of --guest-args and --append
    #[arg(long, value_name = "IMAGE|debian[:VERSION]|SOURCE[+PATCH][,B]")]
    pub guest: Option<String>,
    /// Initial RAM disk of the guest named by --guest
    #[arg(long, value_name = "FILE", requires = "guest")]
    pub initrd: Option<PathBuf>,
    /// Command line of the guest named by --guest
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "guest"
    )]
    pub guest_args: Option<String>,
    /// Idle states that --guest enters by PSCI, besides WFI, from shallow to deep: the exit latency of each, which
    /// Rouse simulates, and its target residency, both in microseconds (100:300+400:2000)
    #[arg(long, value_name = "LATENCY:RESIDENCY[+...]", requires = "guest", value_parser = guest_states)]
    pub guest_states: Option<GuestStates>,
}

fn guest_states(text: &str) -> Result<GuestStates, String> {
    GuestStates::parse(text).ok_or_else(|| format!("use {}", GuestStates::FORM))
}

impl GivenArgs {
    /// Resolves paths relative to `folder`.
    pub fn beside(&mut self, folder: &Path) {
        // The name of a source is relative to the user's current folder, and Debian's kernel is not in a folder.
        let file = |name: &&mut String| debian::read_version(name).is_none() && !name.contains('+');
        if let Some(name) = self.guest.as_mut().filter(file) {
            *name = folder.join(&*name).display().to_string();
        }
        if let Some(initrd) = &mut self.initrd {
            *initrd = folder.join(&*initrd);
        }
    }
}

/// Another kernel as the guest.
#[derive(Debug)]
pub struct Given {
    pub image: Vec<u8>,
    pub initrd: Option<Initrd>,
    /// Number of the kernel's WFE and WFET instructions that [`handover`] has replaced; `None` if the kernel runs
    /// unchanged.
    pub handed_over: Option<u64>,
}

/// The initial RAM disk of another kernel.
#[derive(Debug)]
pub enum Initrd {
    /// A RAM disk from a file.
    Given(Vec<u8>),
    /// A RAM disk: an archive with these files, and with the program that measures Linux. The program is built when it
    /// is needed.
    Measuring(Vec<u8>),
}

impl Given {
    /// Whether the program that measures Linux runs on this kernel.
    pub const fn is_measured(&self) -> bool {
        matches!(self.initrd, Some(Initrd::Measuring(_)))
    }

    /// Returns the total size of the commands' files in bytes, if there are any.
    pub fn size_of_files(&self) -> Option<usize> {
        match &self.initrd {
            Some(Initrd::Measuring(files)) if !files.is_empty() => Some(files.len()),
            _ => None,
        }
    }

    /// Reads and checks the files that the options give.
    pub fn read(args: &GivenArgs) -> Result<Option<Self>> {
        let Some(name) = &args.guest else {
            return Ok(None);
        };
        if name.contains(',') && !Path::new(name).exists() {
            bad_input!(
                "--guest: {name} are several kernels, and `run` alone compares two; name one"
            );
        }
        let [name] = &kernels::images([name])?;
        let image = match debian::read_version(name) {
            Some(version) => fs::read(debian::provide(version, &debian::REMEDY)?)?,
            None => read_file("--guest", Path::new(name), "name an arm64 Image")?,
        };
        let image = match unpack::find_image(image)
            .and_then(program::find_image)
            .and_then(check_guest)
        {
            Ok(image) => image,
            Err(why) => bad_input!("--guest: {name} {why}"),
        };
        let initrd = args.initrd.as_deref().map(read_initrd).transpose()?;
        let initrd = initrd.map(Initrd::Given);
        Ok(Some(Self {
            image,
            initrd,
            handed_over: None,
        }))
    }

    /// Replaces the kernel's WFE and WFET instructions by YIELD: see [`handover`].
    pub fn yield_at_waits(&mut self) {
        self.handed_over = Some(handover::replace_waits(&mut self.image));
    }
}

/// Checks a guest. The error text continues a sentence that begins with the file's name. `running::memory` checks the
/// guest's size against the machine's RAM.
fn check_guest(image: Vec<u8>) -> Result<Vec<u8>, String> {
    image_check::check_image(&image)?;
    match image.len() > MOST {
        true => Err(too_large_message(image.len())),
        false => Ok(image),
    }
}

fn too_large_message(size: usize) -> String {
    format!(
        "has {} MiB, and {} are the most; use a smaller one",
        size >> 20,
        MOST >> 20
    )
}

/// Reads an initial RAM disk. The kernel detects the RAM disk's format. A file in none of the known formats is refused.
fn read_initrd(path: &Path) -> Result<Vec<u8>> {
    read_archive("--initrd", path)
}

/// Reads the archive that `option` names, which Linux will unpack.
///
/// # Errors
/// If the file can't be read, is too large, or is in none of the known formats.
pub fn read_archive(option: &str, path: &Path) -> Result<Vec<u8>> {
    let file = read_file(option, path, "name an archive of cpio, compressed or not")?;
    let shown = path.display();
    if file.len() > MOST {
        bad_input!("{option}: {shown} {}", too_large_message(file.len()));
    }
    if !ARCHIVES.iter().any(|magic| file.starts_with(magic)) {
        bad_input!(
            "{option}: {shown} is not an initial RAM disk: neither an archive of cpio (070701) nor a compressed one \
             (gzip, zstd, xz, lzma, lz4, lzo, bzip2); make one: find . | cpio -o -H newc > FILE"
        );
    }
    Ok(file)
}

/// First bytes of files that Linux unpacks (Linux, Documentation/driver-api/early-userspace/buffer-format.rst; the
/// formats' own magic numbers).
const ARCHIVES: [&[u8]; 9] = [
    b"070701",
    b"070702",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ",
    b"\x5d\0\0",
    b"\x02\x21\x4c\x18",
    b"\x89LZO",
    b"BZh",
];

fn read_file(option: &str, path: &Path, remedy: &str) -> Result<Vec<u8>> {
    let shown = path.display();
    match fs::read(path) {
        Ok(file) => Ok(file),
        Err(error) => bad_input!("{option}: {shown} can't be read ({error}); {remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initial_ram_disk_looks_like_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("initrd");
        let of = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read_initrd(&path)
        };
        for magic in ARCHIVES {
            assert_eq!(of(magic).unwrap(), magic);
        }
        let wrong = of(b"#!/bin/sh").unwrap_err().to_string();
        assert!(wrong.starts_with("--initrd: ") && wrong.contains("cpio"));
        assert!(of(b"").is_err());
    }
}
