// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes several runs at the same time, with guests other than Rouse's, and checks that each run boots the right guest.
//!
//! Builds wait for each other. If each emulator started right after its build, the first run would have booted before
//! the last one builds, and shared state would not matter. Therefore each run starts a script in place of the emulator,
//! and the script waits until all runs have built.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use providing::qemu;
use shell::command;
use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// Number of guests, and number of runs per guest.
const GUESTS: usize = 4;
const RUNS: usize = 2;
/// Number of times that a run looks for the other runs, over ten minutes, before it gives up.
const LOOKS: u32 = 6000;

/// Starts all runs, waits for them, and checks the log of each.
pub fn run() -> Result<()> {
    let place = Scratch::new()?;
    let guests: Vec<usize> = (0..GUESTS).flat_map(|guest| [guest; RUNS]).collect();
    for guest in 0..GUESTS {
        fs::write(image_of(place.path(), guest), image(&line_of(guest)))?;
    }
    let emulator = meeting_script(place.path(), guests.len())?;
    let started = guests
        .iter()
        .map(|&guest| start(&image_of(place.path(), guest), &emulator));
    // Start all processes before waiting for the first.
    let started: Vec<Child> = started.collect::<Result<_>>()?;
    let mut places = BTreeSet::new();
    for (&guest, child) in guests.iter().zip(started) {
        let output = processor_time::rest(child)?;
        let [said, complained] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        ensure!(
            output.status.success(),
            "a run ended with {}; it printed:\n{said}{complained}",
            output.status
        );
        let log = said.lines().find_map(|line| line.strip_prefix("log: "));
        let log = env::current_dir()?.join(log.context("a run named no log")?);
        let place = log.parent().context("the log is in no folder")?.to_owned();
        check(&place, guest)?;
        places.insert(place);
    }
    ensure!(
        places.len() == guests.len(),
        "{} runs left {} folders",
        guests.len(),
        places.len()
    );
    for place in places {
        fs::remove_dir_all(&place).with_context(|| places::shown(&place))?;
    }
    Ok(())
}

fn image_of(place: &Path, guest: usize) -> PathBuf {
    place.join(format!("{guest}.img"))
}

fn line_of(guest: usize) -> String {
    format!("this is guest {guest} of {GUESTS}")
}

/// Writes a script that runs the emulator as soon as `count` runs have started the script.
fn meeting_script(place: &Path, count: usize) -> Result<PathBuf> {
    let qemu = command::typed(&qemu::ensure()?.command());
    let here = place.join("here");
    fs::create_dir(&here)?;
    let here = command::quoted(here);
    let script = place.join("qemu");
    // If a run fails before it boots, the other runs must not wait for ever.
    let text = format!(
        "#!/bin/sh\n\
         if [ \"$1\" != --version ]; then\n\
             : > {here}/$$\n\
             looks=0\n\
             while [ \"$(ls {here} | wc -l)\" -lt {count} ]; do\n\
                 looks=$((looks + 1))\n\
                 if [ $looks -gt {LOOKS} ]; then echo 'the other runs did not come' >&2; exit 1; fi\n\
                 sleep 0.1\n\
             done\n\
         fi\n\
         exec {qemu} \"$@\"\n"
    );
    fs::write(&script, text)?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    Ok(script)
}

/// Starts a run without --out: the runs have to choose different names themselves.
fn start(guest: &Path, emulator: &Path) -> Result<Child> {
    let program = places::program()?;
    let child = Command::new(program)
        .args(["run", "--board", "virt", "--cpus", "1", "--guest"])
        .arg(guest)
        .env(qemu::VARIABLE, emulator)
        // The limit must not end a run, however busy the machine is.
        .args(["--timeout", "36000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.context("this program can't be started again")
}

/// Checks that the log in `place` has the line of `guest` and no other guest's line.
fn check(place: &Path, guest: usize) -> Result<()> {
    let log = place.join("serial.log");
    let text = fs::read_to_string(&log).with_context(|| places::shown(&log))?;
    for other in 0..GUESTS {
        let lines = text.lines().filter(|line| line.contains(&line_of(other)));
        let (count, wanted) = (lines.count(), usize::from(other == guest));
        if count != wanted {
            bail!(
                "{}, of a run of guest {guest}, has {count} lines of guest {other}",
                places::shown(&log)
            );
        }
    }
    Ok(())
}

/// Returns an arm64 Image (Linux: Documentation/arch/arm64/booting.rst) that prints a line and turns the machine off.
fn image(line: &str) -> Vec<u8> {
    const HEADER: usize = 64;
    /// Writes to the PL011's data register. The PL011 has the same address on `virt` and under the hypervisor.
    const CODE: [u32; 14] = [
        0xd2a1_2000, // mov   x0, #0x9000000
        0x1000_01a1, // adr   x1, line
        0x3840_1422, // 1: ldrb w2, [x1], #1
        0x3400_0062, // cbz   w2, 2f
        0xb900_0002, // str   w2, [x0]
        0x17ff_fffd, // b     1b
        0xd280_0100, // 2: mov x0, #8
        0xf2b0_8000, // movk  x0, #0x8400, lsl #16: SYSTEM_OFF (DEN0022, 5.9)
        0xd400_0002, // hvc   #0
        0xd280_0100, // mov   x0, #8
        0xf2b0_8000, // movk  x0, #0x8400, lsl #16
        0xd400_0003, // smc   #0
        0xd503_207f, // 3: wfi
        0x17ff_ffff, // b     3b
    ];
    let mut image = vec![0; HEADER];
    image[..4].copy_from_slice(&0x1400_0010u32.to_le_bytes()); // b code
    image[16..24].copy_from_slice(&0x1000u64.to_le_bytes()); // image_size
    image[24..32].copy_from_slice(&0xau64.to_le_bytes()); // 4 KiB pages, anywhere
    image[56..60].copy_from_slice(b"ARM\x64");
    image.extend(CODE.iter().flat_map(|word| word.to_le_bytes()));
    image.extend(line.as_bytes());
    image.extend(b"\r\n\0");
    image
}

#[cfg(test)]
mod tests {
    use platform::image::Image;

    use super::*;

    #[test]
    fn the_guests_are_images_with_their_lines_behind_the_code() {
        let image = image("line");
        assert!(Image::parse(&image).is_ok());
        // The adr is at 0x44, and its target is 13 instructions later.
        assert_eq!(&image[0x44 + 13 * 4..], b"line\r\n\0");
    }
}
