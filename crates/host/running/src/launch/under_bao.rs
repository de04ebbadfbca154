// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a boot under Bao, and the guest's image: a stub, the kernel, its initial RAM disk and its
//! device tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use plan::PREFIX;
use platform::image::{ALIGN, Image};
use providing::bao::{self, GEM5, Machine, Platform, VIRT};
use providing::qemu::Emulator;
use shell::output::Output;
use vmm::layout::{RAM, REDISTRIBUTORS, TREE_SIZE};
use vmm::tree::{self, Console, Gic, Guest};

use super::{fix_inputs, mode_for};
use crate::board::EmulatedMachine;
use crate::images::Built;
use crate::job::{Job, Variant};

/// QEMU's machine, as Trusted Firmware-A needs it.
const MACHINE: &str = "virt,secure=on,virtualization=on,gic-version=3,dtb-randomness=off";
/// RAM in addition to the guest's RAM, in bytes: for firmware, for Bao, and for the guest's image at its load address.
const OTHERS: u64 = 1 << 30;
/// The RAM of Bao without firmware, in bytes.
const ALONE: u64 = 64 << 20;

/// The end of the line that Bao prints for the guest's SYSTEM_OFF (PSCI, DEN0022F.b, 5.1.8), which Bao does not
/// implement.
pub const REFUSES_OFF: &str = "unknown psci smc_fid 0x84000008";

/// Offsets of the parts of the guest's image from its start, which is the start of the guest's RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaoLayout {
    kernel: u64,
    initrd: u64,
    tree: u64,
    /// Offset of the first byte after all parts.
    pub end: u64,
}

impl BaoLayout {
    /// Lays out a kernel, whose file has `length` bytes, and an initial RAM disk of `initrd` bytes.
    pub fn of(image: &Image, length: u64, initrd: u64) -> Self {
        let kernel = ALIGN.saturating_add(image.text_offset);
        let end = |start: u64, bytes: u64| {
            start
                .saturating_add(bytes)
                .div_ceil(ALIGN)
                .saturating_mul(ALIGN)
        };
        let after = end(kernel, image.size.max(length));
        let tree = end(after, initrd);
        Self {
            kernel,
            initrd: after,
            tree,
            end: tree.saturating_add(TREE_SIZE),
        }
    }
}

/// Returns the command that boots `job` under Bao. Writes the boot's files to `place`.
pub fn under_bao(
    job: &Job,
    variant: Variant,
    emulator: &Emulator,
    built: &Built,
    place: &Path,
) -> Result<Command> {
    let bao = build_bao(job, variant, built)?;
    let file = place.join("guest");
    Output::claim("--under bao", &file)?.write_bytes(&guest_image(job, variant, built)?)?;
    let loader = format!(
        "loader,addr={:#x},force-raw=on,file={}",
        VIRT.image,
        file.display()
    );
    let mut command = emulator.command();
    command
        .args(["-M", MACHINE])
        .args(["-cpu", &job.board().cpu(&job.model, job.metric)?])
        .args(["-smp", &job.cpus.to_string()])
        .args(["-m", &format!("{}M", memory(job) >> 20)])
        .args(["-nic", "none", "-display", "none", "-monitor", "none"])
        .args(["-no-reboot", "-serial", "stdio"])
        .args(mode_for(job.metric).args)
        .arg("-bios")
        .arg(bao.start)
        .args(["-device", &loader]);
    if job.boots_are_alike() {
        fix_inputs(&mut command, variant.seed);
    }
    Ok(command)
}

/// Writes Bao and the guest to one file, for a machine without firmware. The machine loads the file at the board's load
/// address of images. Returns the file, and the machine's RAM in bytes.
pub fn bao_alone(
    job: &Job,
    variant: Variant,
    built: &Built,
    place: &Path,
) -> Result<(PathBuf, u64)> {
    let base = job.board().machine.image_base();
    let base = base.with_context(|| format!("board {}: no image_base", job.board().name))?;
    let bao = build_bao(job, variant, built)?;
    let mut whole = fs::read(bao.start)?;
    let room = usize::try_from(platform(job).image - base)?;
    ensure!(
        whole.len() <= room,
        "Bao has {} bytes, more than {room}",
        whole.len()
    );
    whole.resize(room, 0);
    whole.extend(guest_image(job, variant, built)?);
    let file = place.join("bao");
    Output::claim("--under bao", &file)?.write_bytes(&whole)?;
    Ok((file, memory(job)))
}

/// Returns the platform of the board.
fn platform(job: &Job) -> Platform {
    match job.board().machine {
        EmulatedMachine::Qemu(_) => VIRT,
        EmulatedMachine::Gem5(_) => GEM5,
    }
}

/// Returns Bao, built for this machine and guest.
pub fn build_bao(job: &Job, variant: Variant, built: &Built) -> Result<bao::Built> {
    let (layout, _, _) = parts(job, variant, built)?;
    let bao = built.bao.as_ref().context("there is no Bao")?;
    bao.build_once(Machine {
        platform: platform(job),
        cpus: job.cpus,
        memory: memory(job),
        ram: RAM,
        guest: job.memory.bytes(),
        image_bytes: layout.end,
        redistributors: REDISTRIBUTORS,
    })
}

/// Returns the size of the machine's RAM, in bytes.
fn memory(job: &Job) -> u64 {
    let others = match platform(job).has_firmware {
        true => OTHERS,
        false => ALONE,
    };
    job.memory.bytes() + others
}

/// Returns the offsets of the guest's parts, the contents of the kernel, and the contents of the initial RAM disk.
fn parts(job: &Job, variant: Variant, built: &Built) -> Result<(BaoLayout, Vec<u8>, Vec<u8>)> {
    let kernel = fs::read(built.guest_image(job.image(variant))?)?;
    let initrd = built.initrd.as_ref().map(fs::read).transpose()?;
    let initrd = initrd.unwrap_or_default();
    let image = Image::parse(&kernel).map_err(|why| anyhow!("the guest: {why}"))?;
    let layout = BaoLayout::of(&image, kernel.len() as u64, initrd.len() as u64);
    Ok((layout, kernel, initrd))
}

/// Returns the guest's image.
fn guest_image(job: &Job, variant: Variant, built: &Built) -> Result<Vec<u8>> {
    let (layout, kernel, initrd) = parts(job, variant, built)?;
    let mut arguments = job.load.boot_arguments(variant);
    if let Some(given) = variant.given {
        arguments += &format!(" {PREFIX}under={} {given}", variant.under);
    }
    let cpus: Vec<u64> = (0..u64::from(job.cpus)).collect();
    let start = RAM + layout.initrd;
    let tree = tree::blob(&Guest {
        gic: Gic::V3,
        cpus: &cpus,
        memory: job.memory.bytes(),
        arguments: &arguments,
        initrd: (!initrd.is_empty()).then(|| start..start + initrd.len() as u64),
        seed: job.load.measures_linux().then_some(variant.seed),
        exits: false,
        console: Console::Pl011,
        hypervisor: variant.under.vendor(),
    })?;
    let mut image = vec![0; usize::try_from(layout.end)?];
    let stub = tree_stub(RAM + layout.tree, RAM + layout.kernel);
    for (offset, part) in [
        (0, stub.as_slice()),
        (layout.kernel, &kernel),
        (layout.initrd, &initrd),
        (layout.tree, &tree),
    ] {
        let offset = usize::try_from(offset)?;
        image[offset..offset + part.len()].copy_from_slice(part);
    }
    Ok(image)
}

/// Returns code that loads the address of the device tree into x0 and branches to `kernel`. The tree and the kernel are
/// below 4 GiB. Bao starts a guest with all registers zero, but the boot protocol requires the tree's address in x0
/// (Linux, Documentation/arch/arm64/booting.rst, 4).
fn tree_stub(tree: u64, kernel: u64) -> Vec<u8> {
    // MOVZ and MOVK of a 64-bit register (Arm ARM, C6.2).
    let load = |register: u32, value: u64| {
        let [low, high] = [value & 0xffff, value >> 16 & 0xffff].map(|half| (half as u32) << 5);
        [0xd280_0000 | low | register, 0xf2a0_0000 | high | register]
    };
    let [[a, b], [c, d]] = [load(0, tree), load(16, kernel)];
    // BR X16.
    let code = [a, b, c, d, 0xd61f_0200];
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_image_do_not_overlap() {
        let image = Image {
            text_offset: 0,
            size: 3 << 20,
            granule: None,
            anywhere: true,
        };
        let layout = BaoLayout::of(&image, 1 << 20, 5);
        assert_eq!(layout.kernel, 2 << 20);
        // The kernel needs more memory than the size of its file.
        assert_eq!(layout.initrd, 6 << 20);
        assert_eq!((layout.tree, layout.end), (8 << 20, 10 << 20));
    }

    #[test]
    fn the_stub_passes_the_tree() {
        let code = tree_stub(0x4080_1234, 0x4020_0000);
        let words: Vec<u32> = code
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        // An assembler produces the same words for movz x0, #0x1234; movk x0, #0x4080, lsl #16; ...
        assert_eq!(
            words,
            [
                0xd282_4680,
                0xf2a8_1000,
                0xd280_0010,
                0xf2a8_0410,
                0xd61f_0200
            ]
        );
    }
}
