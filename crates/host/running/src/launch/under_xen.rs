// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a boot under Xen.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use plan::{Given, PREFIX};
use platform::image::ALIGN;

use super::{fix_inputs, mode_for};
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::kvm;
use providing::qemu::Emulator;

/// Linux's arguments. They name the console, because the tree's `stdout-path` does not. On QEMU's CPU `max`, Xen 4.20
/// shows guarded control stacks (FEAT_GCS) to guests, but traps the registers of that feature, so a kernel that uses
/// them crashes during its boot.
const LINUX: &str = "console=ttyAMA0 arm64.nogcs";
/// CPUs for Xen in addition to the guest's CPUs.
const OTHERS: u32 = 2;
/// RAM for Xen itself, in MiB.
const MEMORY: u64 = 512;
/// The address at which QEMU puts the guest's image. Xen then moves the image. QEMU itself uses the first 128 MiB of
/// RAM for Xen and the device tree.
const MODULE: u64 = 0x4900_0000;
/// The console of QEMU's `virt`. Xen leaves it to the guest, but does not tell the guest which device it is.
const CONSOLE: &str = "pl011,0x9000000";

/// Returns the command that boots `job` under Xen. The guest is the first domain, and its vCPUs
/// are pinned.
pub fn under_xen(
    job: &Job,
    variant: Variant,
    emulator: &Emulator,
    built: &Built,
) -> Result<Command> {
    let xen = built.xen.as_ref().context("there is no Xen")?;
    let mut arguments = job.load.boot_arguments(variant);
    let mut options = "console=none dtuart=none".to_owned();
    if let Some(Given { trap, .. }) = variant.given {
        options += match trap.wfi() {
            true => " vwfi=trap",
            false => " vwfi=native",
        };
        let under = variant.under;
        arguments = match job.load.measures_linux() {
            // Arguments from the command line follow these, and override them.
            true => format!("{LINUX} {arguments}"),
            false => format!("{arguments} {PREFIX}uart={CONSOLE}"),
        };
        arguments += &format!(" {PREFIX}under={under} {PREFIX}given-trap={trap}");
    }
    let image = built.guest_image(job.image(variant))?;
    let guest = format!(
        "guest-loader,addr={MODULE:#x},kernel={},bootargs={}",
        double_commas(image.display().to_string()),
        double_commas(arguments)
    );
    let mut command = machine(job, emulator, &xen.image, &options)?;
    command.args(["-device", &guest]);
    if job.boots_are_alike() {
        fix_inputs(&mut command, variant.seed);
    }
    if let Some(initrd) = &built.initrd {
        let behind = (MODULE + fs::metadata(image)?.len()).next_multiple_of(ALIGN);
        let initrd = format!(
            "guest-loader,addr={behind:#x},initrd={}",
            double_commas(initrd.display().to_string())
        );
        command.args(["-device", &initrd]);
    }
    Ok(command)
}

/// Returns the command that boots Xen with its console and without any domain, so that Xen's output can be read.
pub fn xen_alone(job: &Job, emulator: &Emulator, xen: &Path) -> Result<Command> {
    let mut command = machine(job, emulator, xen, "console=dtuart")?;
    super::end_with_us(&mut command);
    Ok(command)
}

/// Returns a machine with Xen. Xen gets `options` in addition to its usual ones.
fn machine(job: &Job, emulator: &Emulator, xen: &Path, options: &str) -> Result<Command> {
    let memory = job.memory.bytes() >> 20;
    let mut all = format!(
        "dom0_mem={memory}M dom0_max_vcpus={} dom0_vcpus_pin {options}",
        job.cpus
    );
    if let Some(more) = &job.xen_args {
        all += &format!(" {more}");
    }
    let mut command = emulator.command();
    command
        .args(["-M", kvm::MACHINE])
        .args(["-cpu", &job.board().cpu(&job.model, job.metric)?])
        .args(["-smp", &(job.cpus + OTHERS).to_string()])
        .args(["-m", &format!("{}M", memory + MEMORY)])
        .args(["-nic", "none", "-display", "none", "-monitor", "none"])
        .args(["-no-reboot", "-serial", "stdio"])
        .args(mode_for(job.metric).args)
        .arg("-kernel")
        .arg(xen)
        .args(["-append", &all]);
    Ok(command)
}

/// Doubles commas, which would otherwise end a value.
fn double_commas(text: String) -> String {
    text.replace(',', ",,")
}
