// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's command line for a job.

mod under_bao;
mod under_kvm;
mod under_xen;

pub use under_bao::{BaoLayout, REFUSES_OFF as BAO_REFUSES_OFF, bao_alone, build_bao, under_bao};
pub use under_kvm::under_kvm;
pub use under_xen::{under_xen, xen_alone};

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use plan::{OPTIONS, PREFIX, Under};

use crate::board::{Firmware, Starts};
use crate::disk;
use crate::images::Built;
use crate::job::{DirtyFirmware, Job, Variant};
use crate::options::{Boot, Metric};
use providing::linux_trees;
use providing::qemu::{self, Emulator, firmware};
use providing::{trusted_firmware, u_boot};
use shell::failure::bad_input;

/// Returns the command that boots `job` once. Also writes the disk, if the boot needs one.
pub fn command(job: &Job, variant: Variant, emulator: &Emulator, built: &Built) -> Result<Command> {
    let Variant { under, seed, .. } = variant;
    let board = job.board();
    let qemu = board.qemu("--board")?;
    let mut command = emulator.command();
    command
        .args(["-M", board.option_m(qemu, under)?])
        .args(["-cpu", &board.cpu(&job.model, job.metric)?])
        .args(["-smp", &job.cpus.to_string()])
        .args(["-m", job.memory.size()])
        .args([
            "-nic",
            "none",
            "-display",
            "none",
            "-monitor",
            "none",
            "-no-reboot",
        ])
        .args(mode_for(job.metric).args);
    for device in &qemu.devices {
        command.args(["-device", device]);
    }
    let own = || board.tree().map(linux_trees::provide_one);
    if let Some(tree) = job.dtb.clone().map(Ok).or_else(own).transpose()? {
        command.arg("-dtb").arg(tree);
    }
    for _ in 0..qemu.serial {
        command.args(["-serial", "null"]);
    }
    if job.boots_are_alike() {
        fix_inputs(&mut command, seed);
    }
    let mut arguments = job.load.boot_arguments(variant);
    if let Some(own) = &qemu.append {
        arguments = format!("{arguments} {own}");
    }
    if let Some(firmware) = &job.dirty_firmware {
        add_dirty_firmware(&mut command, firmware);
    }
    // A boot on the bare machine has no firmware: see boards/virt-uefi.toml.
    if under == Under::None {
        command.args(["-serial", "stdio"]);
        let image = built.guest_image(job.image(variant))?;
        if let Some(trusted) = board.machine.trusted_loader()
            && trusted.starts == Starts::Image
        {
            if built.initrd.is_some() {
                bad_input!(
                    "--initrd: Trusted Firmware-A passes none on; leave --under none out, or use --board virt"
                );
            }
            start_trusted(&mut command, &trusted.release, image, image)?;
        }
        load_kernel(&mut command, image, &arguments);
        if let Some(initrd) = &built.initrd {
            command.arg("-initrd").arg(initrd);
        }
        return Ok(command);
    }
    if let Some(firmware) = board.machine.firmware() {
        add_firmware(&mut command, firmware)?;
    }
    if let Some(trusted) = board.machine.trusted_loader() {
        let next = match trusted.starts {
            Starts::Image => built.packed.clone(),
            Starts::UBoot => u_boot::provide()?,
        };
        start_trusted(&mut command, &trusted.release, &next, &built.packed)?;
    }
    match &qemu.console {
        None => drop(command.args(["-serial", "stdio"])),
        Some(console) => {
            // The firmware writes to the machine's own console.
            let own = match console.alone {
                true => "null",
                false => "chardev:console",
            };
            command.args(["-chardev", "stdio,id=console,mux=on,signal=off"]);
            command.args(["-serial", own, "-device", &console.device]);
            arguments = format!("{arguments} {}", console.argument);
        }
    }
    let device = match job.boot {
        Boot::Kernel => {
            // Firmware passes the arguments on as load options. Other options may precede them, so mark where ours
            // begin.
            if board.machine.firmware().is_some() {
                arguments = format!("{PREFIX}{OPTIONS} {arguments}");
            }
            load_kernel(&mut command, &built.packed, &arguments);
            return Ok(command);
        }
        Boot::Virtio => "virtio-blk-pci",
        Boot::Nvme => "nvme,serial=rouse",
    };
    attach_disk(&mut command, device, &write_disk(built, &arguments)?);
    Ok(command)
}

/// Makes all input from outside the same in each boot: the machine's random numbers and the time of day.
fn fix_inputs(command: &mut Command, seed: u64) {
    command.args(["-seed", &seed.to_string()]);
    command.args(["-rtc", "base=2026-01-01,clock=vm"]);
}

/// A way to run the emulator.
#[derive(Debug)]
pub struct Mode {
    pub name: &'static str,
    args: &'static [&'static str],
}

/// Returns the emulator's mode for a metric. To count instructions, the emulator must run one CPU at a time, advance
/// the machine's time by one nanosecond per instruction, and skip pauses.
pub fn mode_for(metric: Metric) -> Mode {
    match metric {
        Metric::Insns => Mode {
            name: "icount",
            args: &["-icount", "shift=0,sleep=off"],
        },
        Metric::Cycles | Metric::Time => Mode {
            name: "mttcg",
            args: &[],
        },
    }
}

/// Adds firmware to the machine. The firmware's changes to its variables are discarded.
fn add_firmware(command: &mut Command, of: &Firmware) -> Result<()> {
    let code = firmware(&of.code)?;
    let Some(variables) = &of.variables else {
        command.arg("-bios").arg(code);
        return Ok(());
    };
    add_drive(command, "if=pflash,unit=0,readonly=on", &code);
    add_drive(
        command,
        "if=pflash,unit=1,snapshot=on",
        &firmware(variables)?,
    );
    Ok(())
}

/// Makes the machine start from Trusted Firmware-A, which starts `next`. Writes the flash contents to a file next to
/// the image.
fn start_trusted(command: &mut Command, release: &str, next: &Path, image: &Path) -> Result<()> {
    let path = image.with_extension(format!("{release}.flash"));
    trusted_firmware::write_flash(release, next, &path)?;
    command.arg("-bios").arg(path);
    Ok(())
}

/// Adds the firmware for tests to the machine, and passes it the words for the state that it must leave.
fn add_dirty_firmware(command: &mut Command, firmware: &DirtyFirmware) {
    command.arg("-bios").arg(&firmware.file);
    // QEMU does not accept an empty string.
    if !firmware.leaves.is_empty() {
        let leaves = firmware.leaves.replace(',', ",,");
        command.args(["-fw_cfg", &format!("name=opt/rouse/leaves,string={leaves}")]);
    }
}

/// Makes QEMU load `image`, or pass it to the firmware.
fn load_kernel(command: &mut Command, image: &Path, arguments: &str) {
    command.arg("-kernel").arg(image);
    command.args(["-append", arguments]);
}

/// Writes the disk that a run boots, and returns its path. The path depends on the disk's contents, so that it differs
/// from the path of the user's disk, which `image` writes, and from the path of a disk with other contents that another
/// run uses at the same time.
fn write_disk(built: &Built, arguments: &str) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    let path = &built.packed;
    let path = path.with_extension(format!("{:08x}.disk", hasher.finish() as u32));
    disk::write(built, arguments, &path)?;
    Ok(path)
}

/// Attaches the disk at `path`, read-only.
fn attach_disk(command: &mut Command, device: &str, path: &Path) {
    add_drive(command, "if=none,id=disk,readonly=on", path);
    let device = format!("{device},drive=disk,bootindex=0");
    command.args(["-device", &device]);
}

/// Adds a drive with the contents of the file at `path`.
fn add_drive(command: &mut Command, options: &str, path: &Path) {
    // In QEMU's options, a comma ends a value unless it is doubled.
    let path = path.to_string_lossy().replace(',', ",,");
    let drive = format!("{options},format=raw,file={path}");
    command.args(["-drive", &drive]);
}

/// Opens two monitors on sockets in `place`: the emulator's monitor, and one for [`qemu::Events`], which starts the
/// CPUs.
pub fn supervise(command: &mut Command, place: &Path) {
    let (monitor, events) = (place.join(qemu::MONITOR), place.join(qemu::EVENTS));
    command
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", monitor.display()))
        .arg("-qmp")
        .arg(format!("unix:{}", events.display()))
        .arg("-S");
}

/// Makes the emulator end when this program ends.
pub fn end_with_us(command: &mut Command) {
    if cfg!(any(target_os = "linux", target_os = "macos")) {
        command.args(["-run-with", "exit-with-parent=on"]);
    }
}

/// Makes the emulator load the recorder, `plugin`, with options that name files.
pub fn load_recorder(command: &mut Command, plugin: &Path, options: &[(&str, &Path)]) {
    // In QEMU's options, a comma ends a value unless it is doubled.
    let doubled = |path: &Path| path.display().to_string().replace(',', ",,");
    let mut value = format!("file={}", doubled(plugin));
    for (name, path) in options {
        value += &format!(",{name}={}", doubled(path));
    }
    command.arg("-plugin").arg(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::command::typed;

    #[test]
    fn a_comma_ends_no_path() {
        let mut command = Command::new("qemu");
        add_drive(&mut command, "if=none", Path::new("/a,b"));
        assert_eq!(typed(&command), "qemu -drive if=none,format=raw,file=/a,,b");
    }
}
