// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trusted Firmware-A for QEMU's `virt`: the EL3 firmware of most boards.
//!
//! This module fetches Debian's source with apt, which checks it. It builds the firmware once below `target/tools` with
//! [`compiler`], which takes seconds. For each boot, it packs the firmware with the next stage ([`package`]).

mod package;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::apt::{Apt, Remedy};
use crate::compiler;
use shell::failure::{BadInput, bad_input};
use shell::output::Output;
use shell::partial_files::Scratch;
use shell::places;
use shell::terminal::step;

/// Load address of BL33, the program that the firmware starts: NS_IMAGE_OFFSET in
/// `plat/qemu/qemu/include/platform_def.h`.
pub const NEXT: u64 = 0x6000_0000;

const SOURCE: &str = "arm-trusted-firmware";
/// Remedy for missing firmware.
const REMEDY: Remedy = Remedy {
    missing: "Trusted Firmware-A",
    instead: "use --board virt-el3",
};

/// A release that can be built.
struct Release {
    number: &'static str,
    /// Debian's version of the source package.
    version: &'static str,
    /// Flags that this release needs in addition to [`FLAGS`].
    flags: &'static [&'static str],
}

/// Releases that Debian 13 and Debian 12 have; one of them is also built for a GICv2.
const RELEASES: [Release; 3] = [
    Release {
        number: "2.12.1",
        version: "2.12.1+dfsg-1",
        flags: &[],
    },
    Release {
        number: "2.12.1-gicv2",
        version: "2.12.1+dfsg-1",
        flags: &["QEMU_USE_GIC_DRIVER=QEMU_GICV2"],
    },
    Release {
        number: "2.8.0",
        version: "2.8.0+dfsg-1",
        // Newer linkers warn about segments that are both writable and executable, which makes the firmware's build
        // fail.
        flags: &["LDFLAGS=--no-warn-rwx-segments"],
    },
];

/// Flags that name the machine, pass the device tree to the next stage in x0, as for a kernel, and keep warnings of
/// newer compilers from becoming errors.
const FLAGS: [&str; 4] = [
    "PLAT=qemu",
    "QEMU_USE_GIC_DRIVER=QEMU_GICV3",
    "ARM_LINUX_KERNEL_AS_BL33=1",
    "E=0",
];

/// The firmware's stages: the reset code, the loader, the EL3 runtime.
const STAGES: [&str; 3] = ["bl1.bin", "bl2.bin", "bl31.bin"];

/// Checks that `release` is one that can be built.
pub fn check_known(release: &str) -> Result<()> {
    find_release(release).map(drop)
}

fn find_release(number: &str) -> Result<&'static Release> {
    let mut releases = RELEASES.iter();
    let found = releases.find(|release| release.number == number);
    found.ok_or_else(|| {
        let known = RELEASES.map(|release| release.number).join(", ");
        BadInput::error(format!(
            "`qemu.trusted_firmware`: release {number} can't be built; use {known}"
        ))
    })
}

/// Writes a machine's flash to `path`, with the firmware `release` and the next stage `next`.
pub fn write_flash(release: &str, next: &Path, path: &Path) -> Result<()> {
    let folder = provide(release)?;
    let read = |path: &Path| fs::read(path).with_context(|| places::shown(path));
    let [first, loader, stays] = STAGES.map(|stage| read(&folder.join(stage)));
    let flash = package::make_flash(&first?, &loader?, &stays?, &read(next)?)?;
    Output::claim("--board", path)?.write_bytes(&flash)
}

fn folder(release: &str) -> PathBuf {
    places::target()
        .join("tools")
        .join(format!("trusted-firmware-{release}"))
}

/// Returns the folder of `release`, if it was built earlier.
pub fn find_provided(release: &str) -> Option<PathBuf> {
    let folder = folder(release);
    let there = STAGES.iter().all(|stage| folder.join(stage).is_file());
    there.then_some(folder)
}

/// Returns the folder with the stages of `release`; builds them if they are missing.
pub fn provide(release: &str) -> Result<PathBuf> {
    let release = find_release(release)?;
    let here = || find_provided(release.number);
    let Remedy { missing, instead } = REMEDY;
    if here().is_none()
        && let Some(obstacle) = compiler::obstacle()
    {
        bad_input!("{missing} is missing, and {obstacle}; {instead}");
    }
    REMEDY.provide_once(release.number, here, |tools| {
        let apt = tools.sources(&REMEDY)?;
        compiler::provide(&apt)?;
        build(&apt, release)
    })
}

/// Builds `release`; its folder exists only once it is complete.
fn build(apt: &Apt<'_>, release: &Release) -> Result<PathBuf> {
    let Remedy { missing, instead } = REMEDY;
    let source = apt.find_pinned(SOURCE, release.version)?;
    apt.run(
        "downloading its source",
        &["source", "--download-only", &source],
    )?;
    let archive = apt.find_archive(SOURCE, ".orig.tar.");
    let archive = archive.with_context(|| format!("{SOURCE} has no source; {instead}"))?;
    let place = Scratch::new()?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(archive).arg("--strip-components=1");
    unpack.current_dir(place.path());
    run_step(unpack, "unpacking its source", &place)?;
    let mut make = compiler::make_command(&place.path().join("compiler"))?;
    make.args(FLAGS).args(release.flags);
    make.args(["-j2", "bl1", "bl2", "bl31"]);
    make.current_dir(place.path());
    run_step(make, "building it", &place)?;
    let folder = folder(release.number);
    let partial = folder.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
    for stage in STAGES {
        let built = place.path().join("build/qemu/release").join(stage);
        fs::copy(&built, partial.join(stage))
            .with_context(|| format!("{missing} was built without {stage}; {instead}"))?;
    }
    let _ = fs::remove_dir_all(&folder);
    fs::rename(&partial, &folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Runs `command` to its end. If the command fails, keeps its output.
fn run_step(mut command: Command, step: &str, place: &Scratch) -> Result<()> {
    step!("  {step}");
    let output = command.stdin(Stdio::null()).output();
    let Remedy { missing, instead } = REMEDY;
    let said = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => [output.stdout, output.stderr].concat(),
        Err(error) => error.to_string().into_bytes(),
    };
    let log = places::target().join("tools/trusted-firmware.log");
    fs::write(&log, said).with_context(|| place.path().display().to_string())?;
    bad_input!(
        "{missing} is missing, and {step} failed ({} has the output); {instead}",
        places::shown(&log)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::failure::is_bad_input;

    #[test]
    fn a_release_that_can_t_be_built_is_refused_with_those_that_can() {
        assert!(check_known("2.12.1").is_ok());
        let error = check_known("1.0").unwrap_err();
        assert!(is_bad_input(&error));
        assert!(
            error
                .to_string()
                .contains("use 2.12.1, 2.12.1-gicv2, 2.8.0"),
            "{error}"
        );
    }
}
