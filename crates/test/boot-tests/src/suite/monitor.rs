// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the virtual machine monitor under KVM: its refusals, and how guests end, all in one boot of a host. Each guest
//! consists of an Image header and a few instructions.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use providing::qemu;
use running::boot_cache::{BootCache, BootOutcome};
use running::kvm::{self, Host};
use running::launch;
use shell::emulator_process::OutputLine;
use shell::partial_files::Scratch;
use shell::processor_time;

/// PSCI calls by HVC: SYSTEM_OFF and SYSTEM_RESET.
const OFF: [u32; 3] = [0xd2b0_8000, 0xf280_0100, 0xd400_0002];
const RESET: [u32; 3] = [0xd2b0_8000, 0xf280_0120, 0xd400_0002];
/// WFI for ever.
const HANG: [u32; 2] = [0xd503_207f, 0x17ff_ffff];
/// A load from 0xf000000, where the machine has no device or memory.
const CRASH: [u32; 2] = [0xd2a1_e001, 0xb940_0020];
/// Writes `x` to the console at 0x9000000, for ever.
const FLOOD: [u32; 4] = [0xd2a1_2001, 0x5280_0f00, 0x3900_0020, 0x17ff_ffff];

/// The runs: the arguments of each, and the texts that it has to print, in this order, before the next run begins.
const RUNS: [(&[&str], &[&str]); 20] = [
    (
        &["--break-bound", "open", "off"],
        &["ended by signal: 31", "exit status 1"],
    ),
    (
        &["--break-bound", "socket", "off"],
        &["ended by signal: 31", "exit status 1"],
    ),
    (
        &["--break-bound", "start", "off"],
        &["ended by signal: 31", "exit status 1"],
    ),
    (
        &["--break-bound", "execute", "off"],
        &["ended by signal: 31", "exit status 1"],
    ),
    (
        &["--break-bound", "ioctl", "off"],
        &["ended by signal: 31", "exit status 1"],
    ),
    (&["-"], &["refused: - is not an arm64 Image"]),
    (
        &["--console", "many", "off"],
        &["refused: invalid value 'many' for '--console <KIB>'"],
    ),
    (
        &["--gpu", "off"],
        &["refused: unexpected argument '--gpu' found"],
    ),
    (&["nothing"], &["refused: nothing can't be read"]),
    (&["none"], &["refused: none is not an arm64 Image"]),
    (
        &["--cpus", "9", "off"],
        &["refused: --cpus 9", "may use 4; use --cpus 4"],
    ),
    (
        &["--pin", "1,1", "off"],
        &["refused: --pin: CPU 1 is named twice"],
    ),
    (
        &["--memory", "2", "off"],
        &["refused: --memory 2: off", "use --memory 4"],
    ),
    (
        &["--mode", "nvhe", "off"],
        &["refused: --mode: KVM runs here as `VHE`"],
    ),
    (
        &["--mode", "protected", "off"],
        &["refused: --mode: KVM runs here as `VHE`"],
    ),
    (
        &["--timeout", "1", "hang"],
        &[
            "the guest hangs: its console was silent for 1 s",
            "vCPU 0",
            "pc 0x0000000040000044",
            "vCPU 1",
            "exit status 1",
        ],
    ),
    (
        &["--console", "1", "flood"],
        &[
            "xxxx",
            "more than 1 KiB to its console",
            "vCPU 1",
            "exit status 1",
        ],
    ),
    (
        &["crash"],
        &[
            "vCPU 0: the guest accessed 0xf000000, where nothing is",
            "exit status 1",
        ],
    ),
    // The monitor prints nothing when a guest turns its machine off.
    (&["off"], &[]),
    (&["reset"], &["the guest has reset its machine"]),
];

/// A run on a host whose Linux has KVM turned off, in the same form as [`RUNS`].
const WITHOUT_KVM: [(&[&str], &[&str]); 1] = [(&["off"], &["refused: /dev/kvm is missing"])];

/// Boots a host with KVM and one without, and compares their output with the expected texts.
pub fn run(before: &Arc<BootCache>) -> Result<()> {
    let ends = boot(before, String::new(), &RUNS)?;
    ensure!(ends == 8, "{ends} guests ended badly");
    boot(before, "kvm-arm.mode=none".into(), &WITHOUT_KVM).map(drop)
}

/// Boots a host with `arguments` for its kernel, and compares the output of each run. Returns the number of guests that
/// ended with an error.
fn boot(before: &BootCache, arguments: String, wanted: &[(&[&str], &[&str])]) -> Result<usize> {
    let place = Scratch::new()?;
    let host = Host::ensure(None, true, running::images::monitor)?;
    let guests = [
        ("off", image(&OFF)),
        ("reset", image(&RESET)),
        ("hang", image(&HANG)),
        ("crash", image(&CRASH)),
        ("flood", image(&FLOOD)),
        ("none", vec![0; 4096]),
    ];
    let guests: Vec<(&str, &[u8])> = guests.iter().map(|(name, of)| (*name, &**of)).collect();
    let typed = |words: &[&str]| {
        let words = [kvm::BOOT].iter().chain(words);
        words.map(|word| (*word).to_owned()).collect()
    };
    let runs: Vec<Vec<String>> = wanted.iter().map(|(words, _)| typed(words)).collect();
    let mut command = machine()?;
    let boot = kvm::Boot {
        cpus: 2,
        memory: 512,
        arguments,
        runs: &runs,
        guests: &guests,
    };
    host.boot(&mut command, &boot, place.path())?;
    launch::end_with_us(&mut command);
    let said = output_of(command, place.path(), before)?;
    let mut rest = &*said;
    for (words, wanted) in wanted {
        for wanted in *wanted {
            let found = rest
                .find(wanted)
                .with_context(|| format!("{words:?}: `{wanted}` is not in its output:\n{said}"))?;
            rest = &rest[found + wanted.len()..];
        }
    }
    Ok(said.matches("rouse: exit status 1").count())
}

/// Returns the emulator's command for a machine that counts instructions, without a kernel to boot.
pub fn machine() -> Result<Command> {
    let mut command = qemu::ensure()?.command();
    command.args(["-M", kvm::MACHINE, "-cpu", "max,cntfrq=1000000000"]);
    command.args(["-icount", "shift=0,sleep=off", "-nic", "none", "-no-reboot"]);
    command.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
    Ok(command)
}

/// Runs the machine, whose files are in `place`, until it ends by itself. Returns its output. Does not run the machine
/// if `before` has the output.
pub fn output_of(mut command: Command, place: &Path, before: &BootCache) -> Result<String> {
    let boot = before.boot(&qemu::ensure()?.exact, &command, place, &[])?;
    if let Some(went) = boot.went() {
        return Ok(went.console());
    }
    let output = processor_time::output(&mut command).context("QEMU can't be started")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "QEMU ended with {}; it printed:\n{said}{complained}",
        output.status
    );
    boot.keep(&BootOutcome {
        lines: vec![OutputLine::Console(said.clone())],
        report: None,
    })?;
    Ok(said)
}

/// Returns an arm64 Image with `code` (Linux, Documentation/arch/arm64/booting.rst).
fn image(code: &[u32]) -> Vec<u8> {
    const BRANCH: u32 = 0x1400_0010;
    const SIZE: usize = 4096;
    let mut image = vec![0; 64];
    image[..4].copy_from_slice(&BRANCH.to_le_bytes());
    image[16..24].copy_from_slice(&(SIZE as u64).to_le_bytes());
    image[56..60].copy_from_slice(b"ARM\x64");
    image.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    image
}
