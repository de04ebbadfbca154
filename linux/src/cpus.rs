// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPU a thread runs on.

use std::io;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process may run on, by their numbers.
///
/// # Errors
/// The kernel does not report them.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Lets this thread, and those that it starts, run on any of `cpus`.
///
/// # Errors
/// The kernel does not let it.
pub fn unpin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Pins this thread to `cpu`; it runs there when this returns.
///
/// # Errors
/// The kernel does not let it.
pub fn pin(cpu: usize) -> io::Result<()> {
    unpin(&[cpu])
}

/// Runs this thread on each of `cpus` for a moment, and then where it ran before, so that no CPU
/// has been idle since before the call.
///
/// # Errors
/// The kernel does not let it.
pub fn visit(cpus: &[usize]) -> io::Result<()> {
    let before = sched_getaffinity(None)?;
    cpus.iter().try_for_each(|&cpu| pin(cpu))?;
    Ok(sched_setaffinity(None, &before)?)
}

/// Pins another thread to `cpu`.
///
/// # Errors
/// The kernel does not let it.
pub fn pin_other(thread: Pid, cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(Some(thread), &set)?)
}
