// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends the children of this process, which include orphans of programs.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// Ends and reaps all children. Returns whether any child was still running.
///
/// # Errors
/// The kernel does not let this process wait for its children.
pub fn end_all() -> io::Result<bool> {
    let mut one_ran = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                one_ran = true;
                for child in own_children()? {
                    // An error does not matter, because the child may have ended in the meantime.
                    let _ = kill_process(child, Signal::KILL);
                }
                let _ = wait(WaitOptions::empty());
            }
            Err(Errno::CHILD) => return Ok(one_ran),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the children of this process: those whose `/proc/PID/stat` names it as the parent (proc_pid_stat(5)).
fn own_children() -> io::Result<Vec<Pid>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(process) = number.and_then(Pid::from_raw) else {
            continue;
        };
        // A process that has just ended has no such file.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may contain anything.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if parent == Some(&own) {
            found.push(process);
        }
    }
    Ok(found)
}
