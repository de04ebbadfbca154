// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds threads and processes on Linux.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Returns why nothing can be disturbed here. On Linux, there is no obstacle.
pub fn obstacle() -> Option<&'static str> {
    None
}

/// Stops process `pid` for `time`. Returns whether the process still existed.
pub fn stop_process(pid: u32, time: Duration) -> Result<bool> {
    let pid = Pid::from_raw(pid as i32);
    let Some(()) = if_alive(kill(pid, Signal::SIGSTOP))? else {
        return Ok(false);
    };
    thread::sleep(time);
    Ok(if_alive(kill(pid, Signal::SIGCONT))?.is_some())
}

/// Holds one of the threads of process `pid` for `time`. `choose` is called with the number of threads, and returns
/// an index. Returns whether that thread existed.
///
/// Never holds the first thread. Waiting for that thread would also wait for the process, whose end another part of
/// this program must receive.
pub fn hold_thread(pid: u32, time: Duration, choose: impl FnOnce(usize) -> usize) -> Result<bool> {
    let mut threads = threads(pid);
    threads.retain(|&thread| thread != pid as i32);
    threads.sort_unstable();
    if threads.is_empty() {
        return Ok(false);
    }
    let thread = Pid::from_raw(threads[choose(threads.len())]);
    // A thread that is about to end can't be held either (EPERM).
    let seized = match ptrace::seize(thread, Options::empty()) {
        Err(Errno::EPERM) => None,
        other => if_alive(other)?,
    };
    if seized.is_none() || if_alive(ptrace::interrupt(thread))?.is_none() {
        return Ok(false);
    }
    let signal = match if_alive(waitpid(thread, Some(WaitPidFlag::__WALL)))? {
        // Detaching delivers a signal that was pending for the thread.
        Some(WaitStatus::Stopped(_, signal)) => Some(signal),
        Some(WaitStatus::PtraceEvent(..)) => None,
        _ => return Ok(false),
    };
    thread::sleep(time);
    Ok(if_alive(ptrace::detach(thread, signal))?.is_some())
}

/// Returns the threads of process `pid`. Empty if it has ended.
fn threads(pid: u32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the result, or `None` if the process or thread has ended.
fn if_alive<T>(done: nix::Result<T>) -> Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(Errno::ESRCH | Errno::ECHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_has_ended_is_no_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let time = Duration::from_micros(10);
        assert!(!hold_thread(child.id(), time, |_| 0).unwrap());
        assert!(!stop_process(child.id(), time).unwrap());
    }
}
