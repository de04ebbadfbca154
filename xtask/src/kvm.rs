// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host for guests under KVM: a machine of QEMU's with EL2, on which Debian's kernel runs
//! our virtual machine monitor (`vmm/`) as its first and only process.

mod kernel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::images;

/// CPUs of the host: those of the guest, and some for everything else, of which the first
/// serves most interrupts.
const OTHERS: u32 = 2;
/// RAM of the host: more than kernel, guest and initramfs take.
const MEMORY: &str = "1536M";
/// What the kernel is told, so that each boot is like the one before: nothing is at random,
/// and a panic is an end. It prints nothing on the console but that, where the guest prints.
const ARGUMENTS: &str = "nokaslr randomize_kstack_offset=off panic=-1 loglevel=1";

/// A host that can be started.
#[derive(Debug)]
pub struct Host {
    kernel: PathBuf,
    monitor: Vec<u8>,
}

impl Host {
    /// One with `kernel`, or with Debian's, which is provided if it is not there.
    pub fn ensure(kernel: Option<&Path>) -> Result<Self> {
        Ok(Self {
            kernel: kernel::ensure(kernel)?,
            monitor: images::monitor()?,
        })
    }

    /// Adds to `command` what boots this host for guests of `cpus`. Its initramfs, whose
    /// `runs` find `guests`, goes to `place`.
    pub fn boot(
        &self,
        command: &mut Command,
        cpus: u32,
        runs: &[Vec<String>],
        guests: &[(&str, &[u8])],
        place: &Path,
    ) -> Result<()> {
        let path = place.join("initramfs");
        fs::write(&path, vmm::archive::initramfs(&self.monitor, runs, guests))
            .with_context(|| path.display().to_string())?;
        command
            .args(["-smp", &(cpus + OTHERS).to_string()])
            .args(["-m", MEMORY])
            // What the kernel draws from the machine is the same each time.
            .args(["-seed", "1", "-rtc", "base=2026-01-01,clock=vm"])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&path)
            .args(["-append", ARGUMENTS]);
        Ok(())
    }
}
