// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a boot under Xen.

use std::process::Command;

use anyhow::{Context, Result};
use plan::{Given, PREFIX};

use super::mode;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::qemu::Emulator;
use crate::{kvm, memory};

/// CPUs for Xen beside those of the guest.
const OTHERS: u32 = 2;
/// RAM of Xen, MiB.
const MEMORY: u64 = 512;
/// Where the guest's image lies for Xen, which moves it: behind what QEMU itself puts into the
/// first 128 MiB of RAM, Xen and the device tree.
const MODULE: u64 = 0x4900_0000;
/// The console of QEMU's `virt`, which Xen leaves to the guest and does not describe to it.
const CONSOLE: &str = "pl011,0x9000000";

/// The command that boots `job` under Xen: the guest is its first domain, whose vCPUs are
/// pinned.
pub fn under_xen(
    job: &Job,
    variant: Variant,
    emulator: &Emulator,
    built: &Built,
) -> Result<Command> {
    let xen = built.xen.as_ref().context("there is no Xen")?;
    let memory = memory::bytes(&job.memory) >> 20;
    let mut arguments = job.load.boot_arguments(variant.atomics);
    let mut options = format!(
        "dom0_mem={memory}M dom0_max_vcpus={} dom0_vcpus_pin console=none dtuart=none",
        job.cpus
    );
    if let Some(Given { trap, .. }) = variant.given {
        options += match trap.wfi() {
            true => " vwfi=trap",
            false => " vwfi=native",
        };
        let under = variant.under;
        arguments +=
            &format!(" {PREFIX}uart={CONSOLE} {PREFIX}under={under} {PREFIX}given-trap={trap}");
    }
    if let Some(more) = &job.xen_args {
        options += &format!(" {more}");
    }
    // A comma ends a value unless it is doubled.
    let doubled = |text: String| text.replace(',', ",,");
    let image = &built.guest(job.image(variant)).image;
    let guest = format!(
        "guest-loader,addr={MODULE:#x},kernel={},bootargs={}",
        doubled(image.display().to_string()),
        doubled(arguments)
    );
    let mut command = emulator.command();
    command
        .args(["-M", kvm::MACHINE])
        .args(["-cpu", &job.board().cpu(&job.model, job.metric)?])
        .args(["-smp", &(job.cpus + OTHERS).to_string()])
        .args(["-m", &format!("{}M", memory + MEMORY)])
        .args(["-nic", "none", "-display", "none", "-monitor", "none"])
        .args(["-no-reboot", "-serial", "stdio"])
        .args(mode(job.metric).args)
        .arg("-kernel")
        .arg(xen)
        .args(["-append", &options, "-device", &guest]);
    Ok(command)
}
