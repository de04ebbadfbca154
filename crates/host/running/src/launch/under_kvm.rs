// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a boot under KVM.

use std::path::Path;
use std::process::Command;
use std::slice;

use anyhow::{Context, Result};

use super::mode_for;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::kvm;
use crate::kvm::guest_boot::GuestBoot;
use providing::qemu::Emulator;

/// Seconds after which the host has finished booting.
const REST: u32 = 3;

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
    let host = built.host.as_ref().context("there is no host for KVM")?;
    let arguments = job.load.boot_arguments(variant);
    let guest = GuestBoot::new(job, variant, kvm_mode, built, REST, arguments)?;
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
        memory: guest.memory,
        arguments: guest.kernel_arguments.clone(),
        runs: slice::from_ref(&guest.words),
        guests: &guest.files(),
    };
    host.boot(&mut command, &boot, place)?;
    Ok(command)
}
