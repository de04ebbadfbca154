// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk that an arm64 machine with UEFI boots, as made by the verb `image` and by `run --boot virtio` or
//! `nvme`.
//!
//! ```text
//! 0       protective MBR and GPT
//! 1 MiB   EFI system partition, FAT32
//!           \EFI\BOOT\BOOTAA64.EFI   the packed image, as it is
//!           \ROUSE.TXT               boot arguments, for people to edit
//! -1 MiB  GPT again, at the end
//! ```
//!
//! UEFI starts `\EFI\BOOT\BOOTAA64.EFI` on a disk that has no boot entry (UEFI 2.10, section 3.5.1.1), such as a new
//! instance's root disk.

mod text;
mod volume;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use plan::Choice;

use crate::images::{self, Built};
use crate::job::{Load, Variant};
use crate::options::ImageArgs;
use shell::failure::{BadInput, bad_input};
use shell::output::{Disks, Output};
use shell::terminal::{print_lines, say};
use shell::{files, interrupt, output, places};

/// The verb `image`.
pub fn image(args: &ImageArgs) -> Result<()> {
    let plan = &args.load.plan;
    plan.check_used(&plan.plan().map_err(BadInput::error)?)
        .map_err(BadInput::error)?;
    let mut load = Load::of_disk(&args.load)?;
    load.plan.cycles = args.cycles;
    // A disk that can't boot, be described or be written is refused before anything is built.
    let text = text(&load)?;
    let path = match &args.out {
        Some(path) => path.clone(),
        None => default_path(&load)?,
    };
    let disks = if args.force {
        Disks::Forced
    } else {
        Disks::Unforced
    };
    let copy = Output::claim_disk("--out", &path, disks)?;
    interrupt::catch()?;
    let built = interrupt::or(load.build(&images::every_kind()))?;
    copy.write_bytes(&with(&built, &text)?)?;
    say!("{}", output::shown(&path));
    print_lines(next_step(&load).lines());
    Ok(())
}

/// Returns the choice of the disk's only boot. A disk can't switch between several choices.
fn only_choice(load: &Load) -> Result<Choice> {
    match load.plan.choices(load.measures_linux())[..] {
        [choice] => Ok(choice),
        _ if load.measures_linux() => bad_input!(
            "--linux-cpuidle: a kernel idles in one way from its boot on; name one word here, and make a disk for each"
        ),
        _ => bad_input!(
            "--atomics: a boot has one image of the guest; name one word here, and for the other write rouse.atomics= into \
             the disk's ROUSE.TXT"
        ),
    }
}

/// Writes a disk with the boot arguments `arguments` to `path`, for a run.
pub fn write(built: &Built, arguments: &str, path: &Path) -> Result<()> {
    let text = text::boot_text(arguments, built.is_ours())?;
    Output::claim("--boot", path)?.write_bytes(&with(built, &text)?)
}

/// Returns the text file for a disk that boots `load`, or an error if no disk can boot `load`.
pub fn text(load: &Load) -> Result<String> {
    load.board.boots_disks("--board")?;
    let arguments = load.boot_arguments(Variant::of(only_choice(load)?));
    text::boot_text(&arguments, load.guest.is_none())
}

/// Returns a disk whose text file is `text`.
pub fn with(built: &Built, text: &str) -> Result<Vec<u8>> {
    let image = &built.packed;
    let image = fs::read(image).with_context(|| image.display().to_string())?;
    volume::disk_with_files(&image, text)
}

fn default_path(load: &Load) -> Result<PathBuf> {
    let folder = places::target().join("image");
    files::make_folder(&folder)?;
    Ok(folder.join(format!("rouse-{}.disk", load.board.name)))
}

/// Describes how to use the disk.
fn next_step(load: &Load) -> String {
    let docs = places::shown(&places::inside("docs/bring-up.md"));
    let mut said = format!(
        "Raw disk, GPT, one EFI system partition; {} on it holds the boot arguments.\n\
         {docs} has the way from here to a table: snapshot, machine image, instance, console, report.",
        config::PATH
    );
    if let Some(deadlines) = load.deadlines.describe() {
        said += &format!("\n{deadlines}");
    }
    if !load.plan.compact {
        said += "\nA console that keeps only 64 KiB loses the beginning of a long run: --compact makes it short, \
                 --shard divides it.";
    }
    said
}
