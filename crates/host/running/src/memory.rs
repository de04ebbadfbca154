// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks, before a boot, that a machine has enough RAM.
//!
//! Divides RAM as the hypervisor does ([`carve::divide`]), with the images where QEMU puts them. How much RAM
//! firmware takes is not known here, so on machines with firmware, the hypervisor itself checks the RAM.

mod other_hypervisors;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use plan::{Arguments, Cell, Names, Under};
use platform::carve::{self, Division};
use platform::image::{ALIGN, Image};
use platform::{MAX_CPUS, Region};

use crate::board::EmulatedMachine;
use crate::images::Built;
use crate::job::{Job, Variant};
use guests::kernel::Given;
use shell::failure::bad_input;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Start of RAM of QEMU's `virt`.
const RAM: u64 = 0x4000_0000;
/// The address at which QEMU puts an Image whose `text_offset` is 0.
const IMAGE: u64 = RAM + ALIGN;
/// QEMU puts the device tree after the image, at a multiple of 2 MiB, and not below a minimum offset: the middle of the
/// RAM, or 128 MiB if that is lower. `TREE` is the size of the tree.
const TREE_AT_MOST: u64 = 128 * MIB;
const TREE: u64 = MIB;
/// Bytes that the hypervisor takes for the guest's device tree (hypervisor/src/machine/vm.rs, `TREE_SIZE`).
const GUEST_TREE: u64 = 0x2_0000;
/// Sizes of RAM to try, in MiB.
const ENOUGH_MIB: [u64; 12] = [32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384];
/// Smallest RAM with which EDK2 starts. With 96 MiB, it hangs without output.
const FIRMWARE_STARTS_MIB: u64 = 128;
/// RAM left for firmware, in addition to everything that we need. With 128 MiB, EDK2 and the hypervisor left 92 MiB in
/// one piece; with 160 MiB, they left 132 MiB.
const FIRMWARE_TAKES_MIB: u64 = 64;
/// RAM of gem5's machine if the guest is a kernel. Clearing RAM takes the simulator seconds, so the machine of a small
/// kernel has less.
const GEM5_KERNEL_MIB: u64 = 384;
const GEM5_SMALL_KERNEL_MIB: u64 = 96;
/// Largest image of a small kernel, in bytes. A distribution's kernel is larger.
const SMALL_KERNEL: usize = 16 << 20;
/// RAM for the files of commands, as a multiple of their size: the image has them, the kernel unpacks them, and the
/// commands use memory. This RAM grows in steps of [`FILES_STEP`] bytes.
const FILES_TIMES: u64 = 4;
const FILES_STEP: u64 = 256 * MIB;
/// More RAM than any boot needs.
const MOST_MIB: u64 = 1 << 20;

/// Chooses the size of RAM, unless the command line sets it. If the command line sets too little, refuses the job, and
/// names the smallest size that works.
pub fn settle(job: &Job, built: &Built) -> Result<()> {
    if matches!(job.board().machine, EmulatedMachine::Gem5(_)) {
        if let Some(given) = &job.load.guest
            && !job.memory.is_chosen()
        {
            let mib = match given.image.len() <= SMALL_KERNEL {
                true => GEM5_SMALL_KERNEL_MIB,
                false => GEM5_KERNEL_MIB,
            };
            let files = FILES_TIMES * given.size_of_files().unwrap_or(0) as u64;
            job.memory.settle(format!("{}M", mib + files.div_ceil(MIB)));
        }
        return Ok(());
    }
    // The device tree defines the RAM.
    if job.dtb.is_some() || job.board().tree().is_some() {
        return Ok(());
    }
    if let Some(files) = job.load.guest.as_ref().and_then(Given::size_of_files) {
        let more = (FILES_TIMES * files as u64).div_ceil(FILES_STEP) * FILES_STEP;
        let size = job.memory.bytes() + more;
        job.memory.settle(format!("{}M", size / MIB));
    }
    if let Some(enough) = least_size(job, built)? {
        job.memory.settle(enough);
        return Ok(());
    }
    for variant in job.variants()? {
        if variant.under.is_other() {
            other_hypervisors::check(job, built, variant)?;
            continue;
        }
        let under = variant.under;
        let needs = Needs::of(job, built, variant)?;
        let has = job.memory.bytes();
        if needs.fits(has) {
            continue;
        }
        let guest = needs.guest.div_ceil(MIB);
        let Some(least) = (1..MOST_MIB).find(|mib| needs.fits(mib * MIB)) else {
            bad_input!(
                "--guest: its header asks for {guest} MiB of RAM, which no machine here has"
            );
        };
        let at_least = if needs.firmware { "at least " } else { "" };
        bad_input!(
            "--memory: under {under}, {} is too little: the guest needs {guest} MiB of RAM in one piece; \
             use {at_least}--memory {least}M",
            job.memory
        );
    }
    Ok(())
}

/// Returns the smallest RAM size with which `job` runs, if the machine has no firmware and no size was requested. Less
/// RAM makes boots faster, because they spend most of their time clearing the guest's RAM.
fn least_size(job: &Job, built: &Built) -> Result<Option<String>> {
    let variants = job.variants()?;
    let others = variants.iter().any(|variant| variant.under.is_other());
    // Trusted Firmware-A loads the image at addresses of its own choice.
    let placed = job.dirty_firmware.is_some() || job.board().machine.trusted_loader().is_some();
    let given = job.load.guest.is_some() || placed;
    if job.memory.is_chosen() || others || given {
        return Ok(None);
    }
    let needs = variants
        .iter()
        .map(|&variant| Needs::of(job, built, variant));
    let needs = needs.collect::<Result<Vec<_>>>()?;
    let most = job.memory.bytes();
    let firmware = job.board().machine.firmware().is_some();
    let (least, taken) = match firmware {
        true => (FIRMWARE_STARTS_MIB, FIRMWARE_TAKES_MIB),
        false => (0, 0),
    };
    let fit = |mib: &u64| {
        let left = (mib - taken) * MIB;
        needs.iter().all(|needs| needs.fits(left))
    };
    let sizes = ENOUGH_MIB.into_iter();
    let mut sizes = sizes.filter(|mib| *mib >= least && mib * MIB < most);
    Ok(sizes.find(fit).map(|mib| format!("{mib}M")))
}

/// Bytes that a boot needs.
#[derive(Clone, Debug)]
struct Needs {
    image: u64,
    /// Bytes that the hypervisor takes in addition to its image. `None` without a hypervisor.
    hypervisor: Option<u64>,
    /// Contiguous bytes of RAM that the guest needs, from the start of its image.
    guest: u64,
    /// The bytes of the guest's initial RAM disk, which are part of `guest`.
    initrd: u64,
    /// Whether firmware places the image.
    firmware: bool,
}

impl Needs {
    fn of(job: &Job, built: &Built, variant: Variant) -> Result<Self> {
        let under = variant.under;
        let path = built.guest_image(job.image(variant))?;
        let cpus = u64::from(job.cpus).min(MAX_CPUS as u64);
        let file = fs::read(path)?;
        let Ok(image) = Image::parse(&file) else {
            bad_input!("--guest: it is not an arm64 Image");
        };
        let own = match built.guest_elf(job.image(variant)) {
            Some(elf) => bytes_of_own_guest(elf, job, variant)?,
            None => 0,
        };
        let initrd = match &built.initrd {
            Some(initrd) => fs::metadata(initrd)?.len().next_multiple_of(PAGE),
            None => 0,
        };
        let end = image.placed(file.len() as u64, GUEST_TREE).end;
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        let bytes = end.saturating_add(own).saturating_add(initrd);
        let (packed, hypervisor) = match under {
            Under::Rouse => {
                let taken = Taken::read_sizes(&built.hypervisor)?;
                let neighbour = walk_bytes(job, variant).map_or(0, |kib| taken.per_neighbour + kib);
                let each = taken.per_cpu + neighbour;
                (&built.packed, Some(taken.fixed + cpus * each))
            }
            // The module `other_hypervisors` checks all other hypervisors.
            Under::None
            | Under::Xen
            | Under::Bao
            | Under::Kvm
            | Under::KvmNvhe
            | Under::KvmProtected => (path, None),
        };
        Ok(Self {
            image: fs::metadata(packed)?.len().next_multiple_of(PAGE),
            hypervisor,
            guest: bytes,
            initrd,
            firmware: under == Under::Rouse && job.board().machine.boots_disks(),
        })
    }

    /// Whether everything fits into `memory` bytes of RAM.
    fn fits(&self, memory: u64) -> bool {
        let ram = Region {
            base: RAM,
            size: memory,
        };
        let image = Region {
            base: IMAGE,
            size: self.image,
        };
        let tree = (RAM + TREE_AT_MOST.min(memory / 2)).max(image.end());
        let tree = Region {
            base: tree.next_multiple_of(ALIGN),
            size: TREE,
        };
        let Some(hypervisor) = self.hypervisor else {
            // On the bare machine, the guest stays where it was loaded. If it has a RAM disk, QEMU puts the disk where
            // the tree would be, and the tree after the disk.
            let kernel = RAM.saturating_add(self.guest - self.initrd);
            return kernel <= tree.base && tree.end().saturating_add(self.initrd) <= ram.end();
        };
        let mut taken = vec![image];
        if !self.firmware {
            taken.push(tree);
        }
        let there = taken.iter().all(|region| region.end() <= ram.end());
        let division = carve::divide(&[ram], &taken, hypervisor);
        there && matches!(division, Ok(Division { guest, .. }) if guest.size >= self.guest)
    }
}

/// Returns the number of bytes that each CPU's neighbour reads, if the boot arguments request neighbours. Parses the
/// arguments as the hypervisor does.
fn walk_bytes(job: &Job, variant: Variant) -> Option<u64> {
    let arguments = job.load.boot_arguments(variant);
    let (read, _) = Arguments::<Names>::read(&arguments);
    read.plan.neighbours.map(|kib| u64::from(kib) * 1024)
}

/// Returns the bytes that our own guest takes for its measurement in this boot.
fn bytes_of_own_guest(elf: &Path, job: &Job, variant: Variant) -> Result<u64> {
    let taken = Taken::read_sizes(elf)?;
    let machine = job.machine(variant.under)?;
    let plan = job.load.plan_of(variant);
    let values = if plan.raw {
        u64::from(plan.iterations)
    } else {
        0
    };
    let measured = |cell: &Cell| {
        let stamped = if plan.takes_stamps(cell) {
            taken.per_stamped
        } else {
            0
        };
        taken.per_measured + (values * taken.per_value).next_multiple_of(PAGE) + stamped
    };
    let cpus = machine.cpus as u64;
    let listed = taken.per_cell + cpus * taken.per_cell_and_cpu;
    let cells = plan
        .cells(&machine)
        .map(|cell| match cell.skip_reason(&machine) {
            None => listed + measured(&cell),
            Some(_) => listed,
        });
    let runs = || {
        plan.cells(&machine)
            .filter(|cell| cell.skip_reason(&machine).is_none())
    };
    let drawn = runs().map(|cell| plan.drawn(&cell) * taken.per_value).max();
    let drawn = drawn.unwrap_or(0).next_multiple_of(PAGE);
    let streamed = runs().map(|cell| cell.noise.memory()).max().unwrap_or(0);
    let cells = cells.sum::<u64>() + drawn + streamed;
    Ok(taken.fixed + cpus * taken.per_cpu + cpus * cpus * taken.per_pair + cells)
}

/// Bytes that an image needs in addition to its own size, from its symbols: crates/no_std/arch/src/needs.rs.
#[derive(Clone, Copy, Debug)]
struct Taken {
    fixed: u64,
    per_cpu: u64,
    per_neighbour: u64,
    per_pair: u64,
    per_cell: u64,
    per_cell_and_cpu: u64,
    per_measured: u64,
    per_stamped: u64,
    per_value: u64,
}

impl Taken {
    fn read_sizes(elf: &Path) -> Result<Self> {
        let shown = || elf.display().to_string();
        let bytes = fs::read(elf).with_context(shown)?;
        let file = ElfFile64::<object::Endianness>::parse(&*bytes).with_context(shown)?;
        let named = |name| {
            file.symbol_by_name(name)
                .map_or(0, |symbol| symbol.address())
        };
        let taken = Self {
            fixed: named("__needs_fixed"),
            per_cpu: named("__needs_per_cpu"),
            per_neighbour: named("__needs_per_neighbour"),
            per_pair: named("__needs_per_pair"),
            per_cell: named("__needs_per_cell"),
            per_cell_and_cpu: named("__needs_per_cell_and_cpu"),
            per_measured: named("__needs_per_measured"),
            per_stamped: named("__needs_per_stamped"),
            per_value: named("__needs_per_value"),
        };
        anyhow::ensure!(
            taken.fixed > 0 && taken.per_cpu > 0,
            "{} does not state how much memory it takes; crates/no_std/arch/src/needs.rs",
            shown()
        );
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(guest: u64, hypervisor: Option<u64>) -> Needs {
        Needs {
            image: MIB,
            hypervisor,
            guest,
            initrd: 0,
            firmware: false,
        }
    }

    #[test]
    fn a_guest_fits_the_larger_part_that_the_tree_leaves() {
        // In 64 MiB, the tree is in the middle of RAM.
        assert!(needs(28 * MIB, Some(MIB)).fits(64 * MIB));
        assert!(!needs(60 * MIB, Some(MIB)).fits(64 * MIB));
        assert!(needs(60 * MIB, Some(MIB)).fits(130 * MIB));
        // In 512 MiB, the tree is at 128 MiB.
        assert!(needs(380 * MIB, Some(MIB)).fits(512 * MIB));
        assert!(!needs(384 * MIB, Some(MIB)).fits(512 * MIB));
    }

    #[test]
    fn the_bare_machine_has_the_guest_where_it_was_loaded() {
        assert!(needs(31 * MIB, None).fits(64 * MIB));
        assert!(!needs(33 * MIB, None).fits(64 * MIB));
    }

    #[test]
    fn what_firmware_takes_is_not_known() {
        let needs = Needs {
            firmware: true,
            ..needs(40 * MIB, Some(MIB))
        };
        assert!(needs.fits(64 * MIB) && !needs.fits(40 * MIB));
    }
}
