// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a boot under KVM.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use plan::{PREFIX, Trap};

use super::mode_for;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::kvm;
use providing::qemu::Emulator;

/// Returns the command that boots `job` under KVM in `kvm_mode`. The machine runs KVM's host, whose monitor runs the
/// guest's image. Writes the host's files to `place`.
pub fn under_kvm(
    job: &Job,
    variant: Variant,
    kvm_mode: &str,
    emulator: &Emulator,
    built: &Built,
    place: &Path,
) -> Result<Command> {
    const GUEST: &str = "guest";
    const INITRD: &str = "initrd";
    let host = built.host.as_ref().context("there is no host for KVM")?;
    let memory = job.memory.bytes() >> 20;
    let mut words = vec![
        kvm::BOOT.to_owned(),
        // After these seconds, the host has finished its own start.
        "--rest=3".to_owned(),
        format!("--cpus={}", job.cpus),
        format!("--memory={memory}"),
        format!("--pin={}", pinned_cpus(job.cpus)),
        format!("--mode={}", monitor_word(kvm_mode)),
        format!("--source={}", job.load.packed().source().word()),
        // The monitor must not detect a hang, because this program does.
        "--timeout=1000000".to_owned(),
    ];
    let mut arguments = job.load.boot_arguments(variant);
    if let Some(given) = variant.given {
        words.push(format!("--host-poll-us={}", given.host_poll_us));
        arguments += &format!(" {PREFIX}under={} {given}", variant.under);
    }
    // vCPUs have the features of the host's CPUs.
    let image = &built.guest(job.image(variant)).image;
    let image = fs::read(image)?;
    let initrd = built.initrd.as_ref().map(fs::read).transpose()?;
    let mut guests = vec![(GUEST, &*image)];
    if let Some(initrd) = &initrd {
        words.push(format!("--initrd={INITRD}"));
        guests.push((INITRD, initrd));
    }
    if job.load.measures_linux() {
        words.push(format!("--seed={}", variant.seed));
    }
    words.extend([GUEST.to_owned(), arguments]);
    let machine = job
        .board()
        .option_m(job.board().qemu("--under")?, variant.under)?;
    let mut command = emulator.command();
    command
        .args(["-M", machine])
        .args(["-cpu", &job.board().cpu(&job.model, job.metric)?])
        .args(["-nic", "none", "-display", "none", "-monitor", "none"])
        .args(["-no-reboot", "-serial", "stdio"])
        .args(mode_for(job.metric).args);
    let boot = kvm::Boot {
        cpus: job.cpus,
        memory,
        arguments: kvm::arguments(
            kvm_mode,
            variant.given.map_or(Trap::Wfi, |given| given.trap),
        ),
        runs: &[words],
        guests: &guests,
    };
    host.boot(&mut command, &boot, place)?;
    Ok(command)
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
