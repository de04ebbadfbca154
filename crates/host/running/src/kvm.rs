// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host for guests under KVM: a QEMU machine with EL2, on which Debian's kernel runs
//! our virtual machine monitor (`vmm/`) as its first and only process.

pub mod guest_boot;
pub mod kernel;
pub mod local_run;
pub mod place;
pub mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use plan::{CHECKPOINT, PREFIX, Trap};

use guests::handover;
use guests::kernel::unpack;
use shell::failure::bad_input;
use shell::places;
use shell::store::{self, Kept};

/// The first word of the monitor's command lines.
pub const BOOT: &str = "boot";
/// The host's machine, unless the board's file names another. Most boards can use it, because the host needs no
/// firmware.
pub const MACHINE: &str = "virt,virtualization=on,gic-version=3,dtb-randomness=off";
/// CPUs of the host besides those that run vCPUs. The additional CPUs do all other work, and the first one serves most
/// interrupts.
const OTHERS: u32 = 2;
/// RAM of the host in addition to its guest's RAM, in MiB: more than the kernel and the initramfs take.
const MEMORY: u64 = 1024;
/// RAM of a host on gem5 in addition to RAM for its guest, image and files, in MiB. Clearing RAM takes gem5 seconds.
const SIMULATED_MEMORY: u64 = 128;
/// The part of [`MEMORY`] for files of guests, in MiB. The host's RAM holds each file three times: in the archive,
/// unpacked, and in the monitor.
const FILES: u64 = 256;

/// Linux's arguments, for the guest and for KVM's host, that make all boots alike: nothing is random, a panic ends the
/// boot, and the console has little more than the records. These arguments also skip Linux's tests of ciphers, which
/// take two out of ten seconds on an emulator.
pub const ALIKE: &str = "nokaslr randomize_kstack_offset=off panic=-1 loglevel=1 cryptomgr.notests";

/// File name of a host's modified kernel.
const IMAGE: &str = "Image";

/// Values of KVM's boot parameters for WFI and WFE: not trapped, or trapped (Linux,
/// Documentation/admin-guide/kernel-parameters.txt).
const POLICIES: [&str; 2] = ["notrap", "trap"];

/// Machine and programs of a boot.
#[derive(Debug)]
pub struct Boot<'a> {
    pub cpus: u32,
    /// RAM of the guest, in MiB.
    pub memory: u64,
    /// The kernel's arguments in addition to the usual ones.
    pub arguments: String,
    /// The monitor's command lines, one after another.
    pub runs: &'a [Vec<String>],
    /// The images that the command lines name.
    pub guests: &'a [(&'a str, &'a [u8])],
}

/// Returns the kernel's arguments for KVM: the traps, and the `mode` unless KVM chooses it itself.
pub fn arguments(mode: &str, trap: Trap) -> String {
    let [wfi, wfe] = [trap.wfi(), trap.wfe()].map(|traps| POLICIES[usize::from(traps)]);
    let mode = match mode {
        "" => String::new(),
        mode => format!("kvm-arm.mode={mode} "),
    };
    format!("{mode}kvm-arm.wfi_trap_policy={wfi} kvm-arm.wfe_trap_policy={wfe}")
}

/// Returns the host's RAM in addition to its guest's RAM, in MiB, for a host that holds the files of `guests`.
fn own_memory(guests: &[(&str, &[u8])]) -> u64 {
    MEMORY + files_memory(guests).saturating_sub(FILES)
}

/// Returns the RAM that the files of `guests` take in the host, in MiB.
fn files_memory(guests: &[(&str, &[u8])]) -> u64 {
    let bytes: usize = guests.iter().map(|(_, file)| file.len()).sum();
    3 * (bytes as u64).div_ceil(1 << 20)
}

/// A boot of the host on gem5.
#[derive(Debug)]
pub struct Simulated {
    pub image: PathBuf,
    pub initrd: PathBuf,
    pub cpus: u32,
    /// RAM, in MiB.
    pub memory: u64,
    pub arguments: String,
}

/// A host that is ready to start.
#[derive(Debug)]
pub struct Host {
    kernel: PathBuf,
    monitor: Vec<u8>,
    /// The kernel's version.
    pub told: String,
    /// How many of the kernel's WFE instructions were replaced, or `None` if the kernel is unmodified: see
    /// [`handover`].
    pub handed_over: Option<u64>,
    _kept: Option<Kept>,
}

impl Host {
    /// Returns a host that runs `monitor` on `kernel`, or on Debian's kernel, which is fetched if it is missing. If
    /// `hands_over`, replaces the kernel's WFE instructions with YIELD.
    pub fn ensure(
        kernel: Option<&Path>,
        hands_over: bool,
        monitor: fn() -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let host = Self::make_host(kernel, monitor)?;
        match hands_over {
            true => host.yield_at_waits(),
            false => Ok(host),
        }
    }

    /// Returns a host with Debian's kernel that runs `program` as its only process, instead of the monitor.
    pub fn of(program: Vec<u8>) -> Result<Self> {
        Self::make_host(None, || Ok(program))
    }

    fn make_host(kernel: Option<&Path>, monitor: impl FnOnce() -> Result<Vec<u8>>) -> Result<Self> {
        let kernel = kernel::ensure(kernel)?;
        Ok(Self {
            told: kernel::read_banner(&kernel)?,
            monitor: monitor()?,
            kernel,
            handed_over: None,
            _kept: None,
        })
    }

    /// Replaces the kernel's WFE instructions with YIELD, in a copy of its file.
    fn yield_at_waits(self) -> Result<Self> {
        let mut image = self.image()?;
        let handed_over = handover::replace_waits(&mut image);
        let folder = places::target().join("image");
        let kept = store::find_or_make(&folder, "host", &[(IMAGE, &image)])?;
        Ok(Self {
            kernel: kept.path.join(IMAGE),
            handed_over: Some(handed_over),
            _kept: Some(kept),
            ..self
        })
    }

    /// Returns the kernel's Image, unpacked.
    fn image(&self) -> Result<Vec<u8>> {
        let file = fs::read(&self.kernel).with_context(|| self.kernel.display().to_string())?;
        match unpack::find_image(file) {
            Ok(image) => Ok(image),
            Err(why) => bad_input!(
                "KVM's host: {} {why}; name another kernel by --host-kernel",
                self.kernel.display()
            ),
        }
    }

    /// Returns the kernel's file, and the program that runs on it.
    pub fn code(&self) -> (&Path, &[u8]) {
        (&self.kernel, &self.monitor)
    }

    /// Writes the initramfs of `boot` to `place`.
    fn write_initramfs(&self, boot: &Boot<'_>, place: &Path) -> Result<PathBuf> {
        let path = place.join("initramfs");
        let archive = vmm::archive::initramfs(&self.monitor, boot.runs, boot.guests);
        fs::write(&path, archive).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Prepares `boot` of this host in `place` for gem5, which takes an Image.
    pub fn write_for_gem5(&self, boot: &Boot<'_>, place: &Path) -> Result<Simulated> {
        let image = self.image()?;
        let path = place.join(IMAGE);
        fs::write(&path, &image).with_context(|| path.display().to_string())?;
        let image_mib = (image.len() as u64).div_ceil(1 << 20);
        let memory = boot.memory + SIMULATED_MEMORY + image_mib + files_memory(boot.guests);
        Ok(Simulated {
            image: path,
            initrd: self.write_initramfs(boot, place)?,
            cpus: boot.cpus + OTHERS,
            memory,
            arguments: format!("{ALIKE} {} {PREFIX}{CHECKPOINT}", boot.arguments),
        })
    }

    /// Adds the arguments that boot this host to `command`. Its initramfs goes to `place`.
    pub fn boot(&self, command: &mut Command, boot: &Boot<'_>, place: &Path) -> Result<()> {
        let path = self.write_initramfs(boot, place)?;
        command
            .args(["-smp", &(boot.cpus + OTHERS).to_string()])
            .args(["-m", &format!("{}M", boot.memory + own_memory(boot.guests))])
            // The machine gives the kernel the same input in each boot.
            .args(["-seed", "1", "-rtc", "base=2026-01-01,clock=vm"])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&path)
            .args(["-append", &format!("{ALIKE} {}", boot.arguments)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_room_for_large_files() {
        let file = vec![0; 100 << 20];
        assert_eq!(own_memory(&[("guest", &file[..60 << 20])]), MEMORY);
        let two = [("guest", &*file), ("initrd", &file[..1])];
        assert_eq!(own_memory(&two), MEMORY + 303 - FILES);
    }
}
