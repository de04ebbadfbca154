// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls which CPUs threads run on.

use std::io;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// Returns the numbers of the CPUs that this process may run on.
///
/// # Errors
/// The kernel does not report them.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Lets this thread, and all threads that it starts later, run on any of `cpus`.
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

/// Runs this thread on each of `cpus` for a moment, and then on its CPUs from before. So every
/// CPU leaves idle during the call.
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
