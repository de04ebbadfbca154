// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inputs of KVM's host for one boot of a guest, whichever emulator runs the host.

use std::fs;

use anyhow::Result;
use plan::{PREFIX, Trap};

use super::{BOOT, arguments};
use crate::images::Built;
use crate::job::{Job, Variant};

/// Names of the guest's files in the host's archive.
const GUEST: &str = "guest";
const INITRD: &str = "initrd";

/// The monitor's command line, the files that it names, and the host kernel's arguments.
#[derive(Debug)]
pub struct GuestBoot {
    pub words: Vec<String>,
    files: Vec<(&'static str, Vec<u8>)>,
    /// RAM of the guest, in MiB.
    pub memory: u64,
    pub kernel_arguments: String,
}

impl GuestBoot {
    /// Makes a boot of `job` under KVM in `kvm_mode`. The guest gets the boot arguments `guest_arguments`, and starts
    /// `rest` seconds after the monitor, so that the host has finished booting.
    pub fn new(
        job: &Job,
        variant: Variant,
        kvm_mode: &str,
        built: &Built,
        rest: u32,
        mut guest_arguments: String,
    ) -> Result<Self> {
        let memory = job.memory.bytes() >> 20;
        let mut words = vec![
            BOOT.to_owned(),
            format!("--rest={rest}"),
            format!("--cpus={}", job.cpus),
            format!("--memory={memory}"),
            format!("--pin={}", pinned_cpus(job.cpus)),
            format!("--mode={}", monitor_word(kvm_mode)),
            format!("--source={}", job.load.packed().source().word()),
            // The monitor must not detect a hang, because this program detects hangs.
            "--timeout=1000000".to_owned(),
        ];
        if let Some(given) = variant.given {
            words.push(format!("--host-poll-us={}", given.host_poll_us));
        }
        guest_arguments += &level_below(variant);
        // vCPUs have the features of the host's CPUs.
        let image = built.guest_image(job.image(variant))?;
        let mut files = vec![(GUEST, fs::read(image)?)];
        if let Some(initrd) = &built.initrd {
            words.push(format!("--initrd={INITRD}"));
            files.push((INITRD, fs::read(initrd)?));
        }
        if job.load.measures_linux() {
            words.push(format!("--seed={}", variant.seed));
        }
        words.extend([GUEST.to_owned(), guest_arguments]);
        let trap = variant.given.map_or(Trap::Wfi, |given| given.trap);
        Ok(Self {
            words,
            files,
            memory,
            kernel_arguments: arguments(kvm_mode, trap),
        })
    }

    /// Returns the files with their names.
    pub fn files(&self) -> Vec<(&str, &[u8])> {
        let files = self.files.iter();
        files.map(|(name, file)| (*name, &**file)).collect()
    }
}

/// Returns the boot arguments that name the level below the guest, which a guest under KVM can't find out.
pub fn level_below(variant: Variant) -> String {
    let given = variant.given;
    given.map_or_else(String::new, |given| {
        format!(" {PREFIX}under={} {given}", variant.under)
    })
}

/// Returns the monitor's word for KVM's mode.
fn monitor_word(kvm_mode: &str) -> &str {
    match kvm_mode {
        // Linux chooses VHE where the CPU has it.
        "" => "vhe",
        mode => mode,
    }
}

/// Returns the host's CPUs to which `cpus` vCPUs are pinned. Leaves out the first CPU, which serves most interrupts.
fn pinned_cpus(cpus: u32) -> String {
    let pins: Vec<String> = (1..=cpus).map(|cpu| cpu.to_string()).collect();
    pins.join(",")
}
