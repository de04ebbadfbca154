// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program as the first process. The program has the machine to itself and turns it off at the end.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::panic;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use plan::Arguments;
use simulator::Records;

use crate::hypervisor::LevelBelow;
use crate::{bench, commands, output, program, soak};

/// The kernel's file systems, and where they are mounted.
const SYSTEMS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
/// Time for the kernel to finish booting before the first measurement. An emulator that counts instructions skips the
/// time in which the CPUs idle.
const SETTLES: Duration = Duration::from_secs(2);
/// The corresponding time on a simulator of cores, which takes a minute to simulate a second.
const SIMULATED_SETTLES: Duration = Duration::from_millis(200);
/// Time that a simulator needs to show the records (boards/gem5/machine.py: `PART`).
const SHOWS: Duration = Duration::from_millis(2);
/// Longest period of Linux's scheduler tick, in microseconds.
const TICK_US: u64 = 10_000;
/// Difference between the tick's phases in successive repetitions, in microseconds.
const PHASE_US: u64 = 6_181;

/// Whether a simulator runs this machine, and shows the records.
static SIMULATED: AtomicBool = AtomicBool::new(false);

/// The simulator's file of records. On the simulated serial port, each character would cost an access to a device.
#[derive(Debug)]
struct SimulatorFile(Records);

impl Write for SimulatorFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.append(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether this is the first process.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Runs the measurement that the kernel's command line requests, and turns the machine off.
pub fn run() -> ! {
    // If the first process panicked, the kernel would panic too and hide the reason.
    panic::set_hook(Box::new(|why| {
        await_records();
        output::give_up("failed", &why.to_string());
        power_off();
    }));
    if let Err(why) = measure() {
        await_records();
        output::give_up("refused", &why);
    }
    power_off()
}

/// Waits until a simulator has shown all records.
fn await_records() {
    if SIMULATED.load(Relaxed) {
        thread::sleep(SHOWS);
    }
}

fn measure() -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    for (kind, place) in SYSTEMS {
        let mounted = mount(kind, place, kind, MountFlags::empty(), None);
        mounted.map_err(|error| format!("{kind} can't be mounted: {error}"))?;
    }
    if fs::exists(format!("/{}", commands::FILE)).map_err(told)? {
        make_devices();
        program::mount_output();
    }
    // The terminal must not change the lines of records.
    if let Ok(mut terminal) = tcgetattr(io::stdout()) {
        terminal.make_raw();
        tcsetattr(io::stdout(), OptionalActions::Now, &terminal)
            .map_err(|error| told(error.into()))?;
    }
    let arguments = fs::read_to_string("/proc/cmdline").map_err(told)?;
    let parsed = Arguments::parse(&arguments).map_err(|error| error.to_string())?;
    match (parsed.linux_soak, parsed.checkpoint) {
        (Some(seconds), _) => soak::run(&parsed, seconds),
        (None, true) => {
            SIMULATED.store(true, Relaxed);
            thread::sleep(SIMULATED_SETTLES);
            let arguments = make_checkpoint(parsed.seed.unwrap_or_default())?;
            bench::run_to(&arguments, Box::new(SimulatorFile(Records::of_program())))
        }
        (None, false) => {
            thread::sleep(SETTLES);
            bench::run(&arguments)
        }
    }
}

/// Creates the files in /dev that programs expect and the kernel does not create. Few programs need these files, so a
/// file that can't be created is not a failure.
fn make_devices() {
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        let _ = symlink(target, format!("/dev/{name}"));
    }
    for (kind, place) in [("tmpfs", "/dev/shm"), ("devpts", "/dev/pts")] {
        if fs::create_dir_all(place).is_ok() {
            let _ = mount(kind, place, kind, MountFlags::empty(), None);
        }
    }
}

/// Asks the simulator for a checkpoint of a boot with this `seed`. Returns the arguments of the measurement that
/// continues from the checkpoint.
fn make_checkpoint(seed: u64) -> Result<String, String> {
    simulator::checkpoint();
    let arguments = simulator::text()?;
    let parsed = Arguments::parse(&arguments).map_err(|error| error.to_string())?;
    // All repetitions continue from the same boot. Only the phase of ticks and of RCU differs, by a part of a tick that
    // is not a simple fraction.
    let seed = seed.wrapping_add(parsed.seed.unwrap_or_default());
    let phase = seed.wrapping_mul(PHASE_US) % TICK_US;
    thread::sleep(Duration::from_micros(phase));
    Ok(arguments)
}

/// Turns the machine off.
pub fn power_off() -> ! {
    let _ = io::stdout().flush();
    let _ = tcdrain(io::stdout());
    await_records();
    if SIMULATED.load(Relaxed) && LevelBelow::of_machine() == LevelBelow::Nothing {
        simulator::end();
    }
    // This call does not return. If it did, the exit of the first process would make the kernel panic visibly.
    let _ = reboot(RebootCommand::PowerOff);
    std::process::exit(1)
}
