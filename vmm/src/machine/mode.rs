// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the mode in which KVM runs. Only the kernel's log shows this mode.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::Obstacle;
use crate::options::Mode;

/// Text that follows the mode in the kernel's log. The kernel prints it once, when KVM starts.
const SAID: &str = " mode initialized";

/// Returns an error unless KVM runs in mode `wanted`.
pub fn require_mode(wanted: Mode) -> Result<(), Obstacle> {
    let said = logged_mode().map_err(|error| {
        Obstacle(format!(
            "--mode: /dev/kmsg can't be read ({error}); run as root, or leave --mode out"
        ))
    })?;
    match said {
        Some(mode) if Mode::from_log_name(&mode) == Some(wanted) => Ok(()),
        Some(mode) => Err(Obstacle(format!(
            "--mode: KVM runs here as `{mode}`; boot the host's kernel with another kvm-arm.mode=, \
             on a CPU that has what it wants"
        ))),
        None => Err(Obstacle(
            "--mode: the host's kernel does not say how KVM runs; use one whose log has it".into(),
        )),
    }
}

/// Returns the mode of KVM, if it is in the log.
pub fn mode_in_log() -> io::Result<Option<Mode>> {
    Ok(logged_mode()?.and_then(|mode| Mode::from_log_name(&mode)))
}

/// Finds the mode in the kernel's log, and returns the kernel's word for it.
fn logged_mode() -> io::Result<Option<String>> {
    let log = read_kernel_log()?;
    let mut said = log
        .lines()
        .filter_map(|line| Some(line.split_once("kvm [1]: ")?.1.split_once(SAID)?.0));
    Ok(said.next().map(str::to_owned))
}

/// Reads the kernel's log up to now. Each read of the file returns one record.
fn read_kernel_log() -> io::Result<String> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")?;
    let mut log = String::new();
    let mut record = [0; 8192];
    loop {
        match file.read(&mut record) {
            Ok(length) => log += &String::from_utf8_lossy(&record[..length]),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => return Ok(log),
            // A record was overwritten before it was read.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => return Err(error),
        }
    }
}
