// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files for a machine: disks, an EFI application, images of the guest, and Linux programs.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use plan::{Atomics, Program};
use request::PlanArgs;

use super::File;
use providing::toolchain;
use running::board::{Board, names};
use running::disk;
use running::images::{self, Built, Guest};
use running::job::Load;
use running::kvm::program;
use running::options::{JobArgs, LoadArgs};

/// The packages of a product, with their targets.
pub type Packages = &'static [(&'static str, &'static str)];

const HYPERVISOR: (&str, &str) = ("hypervisor", toolchain::TARGET);
const GUEST: (&str, &str) = ("guest-kernel-shim", toolchain::TARGET);
const BOTH: Packages = &[HYPERVISOR, GUEST];

/// A file for a machine.
#[derive(Debug)]
pub struct Product {
    pub name: String,
    /// The file's description and its use, in one paragraph each.
    pub about: String,
    /// Packages from which the file is built.
    pub packages: Packages,
    pub file: File,
}

/// Builds all products.
pub fn build_products() -> Result<Vec<Product>> {
    let built = images::build("virt", Guest::Ours(Program::Measuring))?;
    let mut products = build_disks(&built)?;
    products.push(plain_file("rouse.efi", EFI, BOTH, fs::read(&built.packed)?));
    for (name, atomics, about) in [
        ("guest.img", Atomics::Llsc, GUEST_LLSC),
        ("guest-lse.img", Atomics::Lse, GUEST_LSE),
    ] {
        let image = fs::read(built.guest_image(atomics)?)?;
        products.push(plain_file(name, about, &[GUEST], image));
    }
    let monitor = images::monitor()?;
    let program = program::bytes(&built, &monitor)?;
    let packages: Packages = &[("rouse-kvm", toolchain::LINUX), GUEST];
    products.push(executable_file("rouse-kvm", KVM, packages, program));
    let packages: Packages = &[("linux", toolchain::LINUX)];
    let program = images::on_linux()?;
    products.push(executable_file("rouse-linux", LINUX, packages, program));
    Ok(products)
}

fn plain_file(name: &str, about: &str, packages: Packages, bytes: Vec<u8>) -> Product {
    Product {
        name: name.into(),
        about: about.into(),
        packages,
        file: File {
            bytes,
            executable: false,
        },
    }
}

fn executable_file(name: &str, about: &str, packages: Packages, bytes: Vec<u8>) -> Product {
    let mut product = plain_file(name, about, packages, bytes);
    product.file.executable = true;
    product
}

/// Returns a disk of each kind for every board that boots disks. Boards with equal disks share a disk, since the image
/// discovers its machine.
fn build_disks(built: &Built) -> Result<Vec<Product>> {
    let mut products = Vec::new();
    for (kind, about, plan) in [
        ("measure", MEASURE, default_plan()),
        ("survey", SURVEY, survey_plan()),
    ] {
        let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for board in disk_boards()? {
            let text = disk::text(&Load::of_disk(&load_args(&board, kind, &plan))?)?;
            same.entry(text).or_default().push(board);
        }
        let one = same.len() == 1;
        for (text, boards) in same {
            let name = match one {
                true => format!("{kind}.disk"),
                false => format!("{kind}-{}.disk", boards[0]),
            };
            let bytes = disk::with(built, &text).with_context(|| name.clone())?;
            let about = format!("{about}\n\nIt serves the boards {}.", boards.join(", "));
            products.push(plain_file(&name, &about, BOTH, bytes));
        }
    }
    Ok(products)
}

/// Returns the boards that boot disks.
fn disk_boards() -> Result<Vec<String>> {
    let mut boards = Vec::new();
    for name in names()? {
        if Board::load(&name)?.machine.boots_disks() {
            boards.push(name);
        }
    }
    Ok(boards)
}

/// Returns the arguments of `cargo xtask image --board BOARD` for a disk of kind `kind` with the plan `plan`.
fn load_args(board: &str, kind: &str, plan: &PlanArgs) -> LoadArgs {
    LoadArgs {
        plan: plan.clone(),
        survey: kind == "survey",
        ..JobArgs::on(board).load
    }
}

/// Returns the default matrix, shortened as a console requires.
fn default_plan() -> PlanArgs {
    PlanArgs {
        compact: true,
        ..PlanArgs::default()
    }
}

/// Returns the shortest plan, for a first boot.
fn survey_plan() -> PlanArgs {
    PlanArgs::naming(&[("workload", "ipi"), ("shape", "dry")])
}

const MEASURE: &str = "\
A disk that measures the default matrix: GPT with one EFI system partition (FAT32). A machine with UEFI boots it by itself, as an \
instance's root disk for example. Where there is EL2, hypervisor and guest run; in a virtual machine the guest runs alone and measures what \
is below it. The results go to the machine's console, which keeps 64 KiB in some places: the output is that short. When it is done it turns \
the machine off; it does so after a deadline, too.

Write it to a disk (`dd if=measure.disk of=/dev/DISK bs=1M conv=fsync`), or upload it as a snapshot (`coldsnap upload --wait measure.disk`), and \
capture the console. `ROUSE.TXT` on its partition says what is measured; change it as you like (`mcopy -o -i measure.disk@@1M \
ROUSE.TXT ::/ROUSE.TXT`, from mtools). QEMU boots the disk too: `qemu-system-aarch64 -M virt,gic-version=3 -accel kvm -cpu host -smp 4 -m 1G -bios \
QEMU_EFI.fd -nographic -drive file=measure.disk,format=raw,if=virtio | tee serial.log`.";

const SURVEY: &str = "\
The same disk with other words in its `ROUSE.TXT`: it prints what the machine is (ID registers, tables, GIC, counters, PMU) and measures two \
cells. Boot it first on a machine that Rouse has not run on.";

const EFI: &str = "\
What the disks hold as `\\EFI\\BOOT\\BOOTAA64.EFI`: hypervisor and guest as one EFI application. It is an arm64 Image as well, so a \
loader that boots Linux boots it.

On a machine that boots something else, put it on the EFI system partition and start it from the shell or by a boot entry; next to it, `\\ROUSE.TXT` on the \
same partition has the boot arguments. Without that file it measures the default matrix. In QEMU: `qemu-system-aarch64 -M \
virt,virtualization=on,gic-version=3 -cpu max -smp 2 -m 512M -nographic -kernel rouse.efi -append 'rouse.workload=pingpong'`.";

const GUEST_LLSC: &str = "\
The guest alone, an arm64 Image for EL1, with load and store exclusive. For a bare machine, or as the guest of a hypervisor of your own that \
boots Linux.

In QEMU, without a hypervisor: `qemu-system-aarch64 -M virt,gic-version=3 -cpu max -smp 2 -m 512M -nographic -kernel guest.img`.";

const GUEST_LSE: &str = "\
The same with LSE atomics, for machines on which every CPU has them (Armv8.1).";

const KVM: &str = "\
A static program for arm64 Linux with `/dev/kvm`, with a virtual machine monitor and the guest in it. It measures what a wake-up costs a guest of \
this KVM. Nothing is installed, and the machine does not reboot.

Copy it there, and run it as root or in the group kvm: `./rouse-kvm > serial.log`, or `./rouse-kvm --table` for the table alone. \
`./rouse-kvm --help` lists its words. A download may lose the permission to execute: `chmod +x rouse-kvm`.";

const LINUX: &str = "\
A static program for any arm64 Linux, which measures Linux itself from user space: pipes, futexes, timers, idle. It needs no KVM.

Copy it there, and run it: `./rouse-linux --help` lists its words. The results are records on standard output.";
