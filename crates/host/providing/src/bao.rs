// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bao, a static hypervisor. Each build, made with [`compiler`], is for one machine and one guest. The user names a
//! checkout of Bao's source, because no package registry has Bao.

mod description;

use std::ffi::OsStr;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result};
use twox_hash::XxHash64;

pub use description::{GEM5, Machine, Platform, VIRT};

use crate::apt::Remedy;
use crate::{compiler, trusted_firmware};
use shell::failure::bad_input;
use shell::partial_files::Scratch;
use shell::places;
use shell::terminal::step;

/// Remedy for missing tools.
const REMEDY: Remedy = Remedy {
    missing: "what builds Bao",
    instead: "leave `bao` out of --under",
};
/// The variable that names a checkout.
const VARIABLE: &str = "BAO";
/// Bao's name for QEMU's `virt`.
const PLATFORM: &str = "qemu-aarch64-virt";
/// The file in Bao's source that describes this machine.
const DESCRIPTION: &str = "src/platform/qemu-aarch64-virt/virt_desc.c";
/// A version of Bao that is known to have these files.
const KNOWN: &str = "commit 738e3dc of July 2026 has it";
/// The Trusted Firmware-A that starts Bao. Bao does not work with QEMU's own PSCI, whose CPU_ON rejects a target with
/// bit 31 set.
const FIRMWARE: &str = "2.12.1";
/// Name of the built configuration.
const CONFIGURATION: &str = "rouse";

/// A checkout of Bao.
#[derive(Debug)]
pub struct Bao {
    source: PathBuf,
    /// Hash of the files that are compiled.
    hash: u64,
    /// The version of the checkout.
    pub told: String,
}

/// The files that a build of Bao produces.
#[derive(Debug)]
pub struct Built {
    /// The file from which the machine boots: a flash with Trusted Firmware-A and Bao, or Bao alone.
    pub start: PathBuf,
    /// Bao with its symbols.
    pub elf: PathBuf,
}

impl Bao {
    /// Reads the checkout `named`.
    ///
    /// # Errors
    /// There is no checkout, or it is not a checkout of Bao.
    pub fn find(named: Option<&Path>) -> Result<Self> {
        let source = Self::source(named)?;
        let shown = places::shown(&source);
        let changed = CHANGES.iter().map(|change| change.file);
        for file in ["Makefile", DESCRIPTION].into_iter().chain(changed) {
            if !source.join(file).is_file() {
                bad_input!("--bao: {shown} has no {file}; name a checkout of Bao ({KNOWN})");
            }
        }
        for change in &CHANGES {
            change.changed_text(&source)?;
        }
        let mut hash = XxHash64::with_seed(0);
        for part in ["Makefile", "scripts", "src"] {
            hash_files(&source.join(part), &mut hash).with_context(|| shown.clone())?;
        }
        let hash = hash.finish();
        let told = match commit_of(&source) {
            Some(commit) => format!("Bao {commit}"),
            None => format!("Bao, source {hash:016x}"),
        };
        let source = source.canonicalize().with_context(|| shown)?;
        Ok(Self { source, hash, told })
    }

    /// Returns the checkout `named`, or the one that the variable [`VARIABLE`] names.
    ///
    /// # Errors
    /// Neither the argument nor the variable names a checkout.
    pub fn source(named: Option<&Path>) -> Result<PathBuf> {
        let variable = || env::var_os(VARIABLE).filter(|value| !value.is_empty());
        match named
            .map(Path::to_owned)
            .or_else(|| variable().map(PathBuf::from))
        {
            Some(source) => Ok(source),
            None => bad_input!(
                "--bao: no registry has Bao; name a checkout by --bao DIR or the variable {VARIABLE}"
            ),
        }
    }

    /// Returns Bao for `machine`; builds it unless an earlier run has done so.
    ///
    /// # Errors
    /// The tools are missing, or the build fails.
    pub fn build_once(&self, machine: Machine) -> Result<Built> {
        let mut hash = XxHash64::with_seed(self.hash);
        for change in changes_for(machine) {
            hash.write(change.to.as_bytes());
        }
        hash.write(machine.platform().as_bytes());
        hash.write(machine.guest().as_bytes());
        let name = format!("bao-{:016x}", hash.finish());
        let folder = places::target().join("tools").join(name);
        let here = || {
            let [start, elf] = ["bao.start", "bao.elf"].map(|name| folder.join(name));
            (start.is_file() && elf.is_file()).then_some(Built { start, elf })
        };
        if here().is_some() {
            return here().context("it was here");
        }
        if let Some(obstacle) = compiler::obstacle() {
            bad_input!(
                "{} is missing, and {obstacle}; {}",
                REMEDY.missing,
                REMEDY.instead
            );
        }
        let host = host_compiler()?;
        if machine.platform.has_firmware {
            trusted_firmware::provide(FIRMWARE)?;
        }
        let label = format!("Bao for {} CPUs", machine.cpus);
        REMEDY.provide_once(&format!("({label})"), here, |tools| {
            compiler::provide(&tools.sources(&REMEDY)?)?;
            self.build(machine, host, &folder)?;
            here().context("Bao was built without its files")
        })
    }

    /// Builds a copy of the source; `folder` exists only once it is complete.
    fn build(&self, machine: Machine, host: &str, folder: &Path) -> Result<()> {
        let place = Scratch::new()?;
        let copy = place.path().join("bao");
        for part in ["Makefile", "scripts", "src", "configs", "ci"] {
            copy_files(&self.source.join(part), &copy.join(part))?;
        }
        let configurations = place.path().join("configurations");
        let configuration = configurations.join(CONFIGURATION);
        fs::create_dir_all(&configuration)?;
        fs::write(configuration.join("config.c"), machine.guest())?;
        fs::write(copy.join(DESCRIPTION), machine.platform())?;
        for change in changes_for(machine) {
            fs::write(copy.join(change.file), change.changed_text(&self.source)?)?;
        }
        let mut make = compiler::make_command(&place.path().join("compiler"))?;
        make.arg(format!("PLATFORM={PLATFORM}"));
        make.arg(format!("CONFIG_REPO={}", configurations.display()));
        make.arg(format!("CONFIG={CONFIGURATION}"));
        // Otherwise, the compiler's limits.h would include the limits.h of this computer's C library.
        let mut flags = "CPPFLAGS=-D_LIBC_LIMITS_H_".to_owned();
        if !machine.platform.has_firmware {
            flags += " -DPLAT_PSCI_STANDBY_NOT_SUPPORTED=1";
        }
        make.arg(flags);
        make.arg(format!("HOST_CC={host}")).arg("-j2");
        // Keep symbols, for explanations. Set the banner's time to a constant, so that equal sources give equal images.
        make.arg("sstrip=true").env("SOURCE_DATE_EPOCH", "0");
        make.current_dir(&copy).stdin(Stdio::null());
        step!("  building it");
        let output = make.output();
        let built = copy.join("bin").join(PLATFORM).join(CONFIGURATION);
        let built = ["bao.bin", "bao.elf"].map(|name| built.join(name));
        let failed = match &output {
            Ok(output) if output.status.success() && built.iter().all(|file| file.is_file()) => {
                None
            }
            Ok(output) => Some([&*output.stdout, &*output.stderr].concat()),
            Err(error) => Some(error.to_string().into_bytes()),
        };
        if let Some(text) = failed {
            let log = places::target().join("tools/bao.log");
            fs::write(&log, text).with_context(|| log.display().to_string())?;
            bad_input!(
                "--bao: {} does not build ({} has the output); name another checkout ({KNOWN})",
                places::shown(&self.source),
                places::shown(&log)
            );
        }
        let partial = folder.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        let [image, elf] = built;
        let start = partial.join("bao.start");
        match machine.platform.has_firmware {
            true => trusted_firmware::write_flash(FIRMWARE, &image, &start)?,
            false => drop(fs::copy(image, start)?),
        }
        fs::copy(elf, partial.join("bao.elf"))?;
        let _ = fs::remove_dir_all(folder);
        fs::rename(&partial, folder).with_context(|| folder.display().to_string())
    }
}

/// A change to one of Bao's files, without which Bao does not start on this emulator.
struct Change {
    file: &'static str,
    /// The text that has to precede the changed text.
    after: &'static str,
    from: &'static str,
    to: &'static str,
    /// The end of the error message if the file lacks the text to change.
    why: &'static str,
}

const CHANGES: [Change; 2] = [
    // The first CPU's SEV may come before the other CPUs are on. On an emulator whose WFE waits, they would then wait
    // for ever.
    Change {
        file: "src/arch/armv8/armv8-a/aarch64/boot.S",
        after: "\nwait_for_bsp:",
        from: "wfe",
        to: "yield",
        why: "where CPUs wait for the first, which has to be a YIELD on this emulator",
    },
    // Bao's table of address sizes ends at 48 bits (5), and QEMU's CPU `max` has 52 bits (6). VTCR_EL2.PS may be less
    // than ID_AA64MMFR0_EL1.PARange (Arm ARM, D24.2.189).
    Change {
        file: "src/arch/armv8/armv8-a/aarch64/vmm.c",
        after: "min_parange = ",
        from: "0x7;",
        to: "0x5;",
        why: "as the largest size of addresses, which has to be that of its table",
    },
];

/// Without firmware, nothing answers an SMC, and all CPUs are already on when Bao turns them on. So the call returns
/// PSCI's ALREADY_ON (DEN0022F.b, 5.2.2).
const NO_FIRMWARE: Change = Change {
    file: "src/arch/armv8/armv8-a/smc.c",
    after: "__asm__ volatile(\"",
    from: "smc\t#0",
    to: "mov x0, #-4",
    why: "as its call of firmware, of which gem5 has none",
};

/// Returns the changes that a machine needs.
fn changes_for(machine: Machine) -> impl Iterator<Item = &'static Change> {
    let none = (!machine.platform.has_firmware).then_some(&NO_FIRMWARE);
    CHANGES.iter().chain(none)
}

impl Change {
    /// Returns the changed text of the file in `source`.
    fn changed_text(&self, source: &Path) -> Result<String> {
        let path = source.join(self.file);
        let text = fs::read_to_string(&path).with_context(|| places::shown(&path))?;
        let made = || {
            let (before, rest) = text.split_once(self.after)?;
            let (between, rest) = rest.split_once(self.from)?;
            // Only a comment may come between the two texts.
            let near = between.lines().count() <= 3 && !between.contains(":\n");
            near.then(|| [before, self.after, between, self.to, rest].concat())
        };
        match made() {
            Some(text) => Ok(text),
            None => bad_input!(
                "--bao: {} has no `{}` {}; name another checkout ({KNOWN})",
                places::shown(&path),
                self.from.escape_default(),
                self.why
            ),
        }
    }
}

/// Returns the name of this computer's C compiler, with which Bao's build compiles a program that the build then runs.
fn host_compiler() -> Result<&'static str> {
    let works = |name: &&str| {
        let mut command = Command::new(name);
        let quiet = command.arg("--version").stdin(Stdio::null()).output();
        quiet.is_ok_and(|output| output.status.success())
    };
    match ["cc", "gcc", "clang"].into_iter().find(|name| works(name)) {
        Some(name) => Ok(name),
        None => bad_input!(
            "--bao: Bao's build needs a C compiler for this computer; install one (Debian: gcc), or leave `bao` out of --under"
        ),
    }
}

/// Returns the short hash of the checked-out commit, with a mark if files differ from that commit.
fn commit_of(source: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(source).args(arguments);
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // If the folder is inside another repository, the commit of that repository says nothing about Bao.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let is_own = Path::new(&top).canonicalize().ok()? == source.canonicalize().ok()?;
    let commit = git(&["rev-parse", "--short", "HEAD"]).filter(|_| is_own)?;
    match git(&["status", "--porcelain", "src", "scripts", "Makefile"])?.as_str() {
        "" => Some(commit),
        _ => Some(format!("{commit}, changed")),
    }
}

/// Adds the names and contents of all files to `hash`.
fn hash_files(path: &Path, hash: &mut XxHash64) -> Result<()> {
    for (name, file) in sorted_files(path)? {
        hash.write(name.as_encoded_bytes());
        hash.write(&fs::read(&file).with_context(|| places::shown(&file))?);
    }
    Ok(())
}

/// Copies a file, or all files of a folder. Copies nothing if `from` does not exist.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for (_, file) in sorted_files(from)? {
        let place = to.join(file.strip_prefix(from)?);
        // The path of a file relative to itself is empty.
        let place = if file == from { to.to_owned() } else { place };
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(&file, &place).with_context(|| places::shown(&file))?;
    }
    Ok(())
}

/// Returns the files below `path` in sorted order, or `path` itself if it is a file. Each file is paired with its file
/// name.
fn sorted_files(path: &Path) -> Result<Vec<(std::ffi::OsString, PathBuf)>> {
    if path.is_file() {
        let name = path.file_name().unwrap_or(OsStr::new("")).to_owned();
        return Ok(vec![(name, path.to_owned())]);
    }
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(path).with_context(|| places::shown(path))?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        all.extend(sorted_files(&entry)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
