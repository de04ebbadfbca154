// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program as the first process. It has the machine to itself and turns it off at the end.

use std::fs;
use std::io::{self, Write};
use std::panic;
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use plan::Arguments;

use crate::{bench, output, soak};

/// The kernel's file systems, and where they are mounted.
const SYSTEMS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
/// Time for the kernel to finish its boot before the first measurement. An emulator that counts instructions skips
/// the idle part of it.
const SETTLES: Duration = Duration::from_secs(2);

/// Returns whether this is the first process.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Runs the measurement that the kernel's command line requests, and turns the machine off.
pub fn run() -> ! {
    // If the first process panicked, the kernel would panic too and hide the reason.
    panic::set_hook(Box::new(|why| {
        output::give_up("failed", &why.to_string());
        off();
    }));
    if let Err(why) = measured() {
        output::give_up("refused", &why);
    }
    off()
}

fn measured() -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    for (kind, place) in SYSTEMS {
        let mounted = mount(kind, place, kind, MountFlags::empty(), None);
        mounted.map_err(|error| format!("{kind} can't be mounted: {error}"))?;
    }
    // The terminal must not change the lines.
    if let Ok(mut terminal) = tcgetattr(io::stdout()) {
        terminal.make_raw();
        tcsetattr(io::stdout(), OptionalActions::Now, &terminal)
            .map_err(|error| told(error.into()))?;
    }
    let arguments = fs::read_to_string("/proc/cmdline").map_err(told)?;
    let parsed = Arguments::parse(&arguments).map_err(|error| error.to_string())?;
    match parsed.linux_soak {
        Some(seconds) => soak::run(&parsed, seconds),
        None => {
            thread::sleep(SETTLES);
            bench::run(&arguments)
        }
    }
}

/// Turns the machine off.
pub fn off() -> ! {
    let _ = io::stdout().flush();
    let _ = tcdrain(io::stdout());
    // It does not return. If it did, the kernel would panic visibly.
    let _ = reboot(RebootCommand::PowerOff);
    std::process::exit(1)
}
