// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the files for the boot partition of a Raspberry Pi's SD card: the verb `image`, for a board that a device tree
//! describes.
//!
//! The partition already has the firmware and its device trees, for example from Raspberry Pi OS. The firmware starts
//! `rouse.img` or `guest.img` at EL2, gives it the device tree, and appends `cmdline.txt` to the tree's boot arguments (Raspberry
//! Pi, documentation of config.txt).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plan::Atomics;

use crate::board::Board;
use crate::images;
use crate::job::{Load, Variant};
use crate::options::{For, ImageArgs};
use shell::failure::{BadInput, bad_input};
use shell::output::{self, Output};
use shell::terminal::say;
use shell::{files, interrupt, places};

/// `rouse.img` is the hypervisor with its guest, and `guest.img` the guest alone.
///
/// The clock rates are fixed, so that the ticks of two runs can be compared. The console is on the 40-pin header (GPIO
/// 14 and 15), and on a Pi 5 on a separate connector.
const CONFIG: &str = "\
# SPDX-License-Identifier: MIT OR Apache-2.0
arm_64bit=1
kernel=rouse.img
# kernel=guest.img
enable_uart=1
dtoverlay=disable-bt
force_turbo=1
[pi5]
os_check=0
";

/// Returns the purpose of the image: the one that `--for` names, or else the board's usual one.
pub fn what(args: &ImageArgs) -> Result<For> {
    let board = Board::load(&args.load.board)?;
    let is_pi = board
        .tree()
        .is_some_and(|tree| tree.starts_with("broadcom/"));
    let usual = if is_pi { For::Card } else { For::Uefi };
    Ok(args.what.unwrap_or(usual))
}

/// Writes the files for the card into a folder.
pub fn image(args: &ImageArgs) -> Result<()> {
    let plan = &args.load.plan;
    plan.check_used(&plan.plan().map_err(BadInput::error)?)
        .map_err(BadInput::error)?;
    let mut load = Load::new(&args.load)?;
    load.plan.cycles = args.cycles;
    if load.guest.is_some() {
        bad_input!(
            "--guest: a card of a Raspberry Pi gets our guest, and Linux is there already; leave it out"
        );
    }
    let [choice] = load.plan.choices(false)[..] else {
        bad_input!("--atomics: a card has one image of the guest; name one word here");
    };
    // A Pi 4 has no LSE, and a Pi 5 runs either image.
    let atomics = choice.atomics.unwrap_or(Atomics::Llsc);
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => places::target()
            .join("image")
            .join(format!("rouse-{}", load.board.name)),
    };
    files::make_folder(&folder)?;
    let claim = |name: &str| Output::claim("--out", &folder.join(name));
    let (hypervisor, guest, config, line) = (
        claim("rouse.img")?,
        claim("guest.img")?,
        claim("config.txt")?,
        claim("cmdline.txt")?,
    );
    interrupt::catch()?;
    let built = interrupt::or(load.build(&images::every_kind()))?;
    hypervisor.write_bytes(&read_file(&built.packed)?)?;
    guest.write_bytes(&read_file(built.guest_image(atomics)?)?)?;
    config.write_bytes(CONFIG.as_bytes())?;
    let arguments = load.boot_arguments(Variant::of(choice));
    line.write_bytes(format!("{arguments}\n").as_bytes())?;
    next_step(&folder);
    Ok(())
}

fn read_file(path: &PathBuf) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

fn next_step(folder: &Path) {
    say!("{}", output::shown(folder));
    say!("Save config.txt and cmdline.txt of the first partition of a card with Raspberry");
    say!("Pi OS, copy these four files there, and capture the console at 115200 baud.");
    say!(
        "{}, \"A Raspberry Pi\", has the way to a table.",
        places::shown(&places::inside("docs/bring-up.md"))
    );
}
