// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls which CPUs threads run on.

use std::io;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// Returns the numbers of the CPUs on which this process may run.
///
/// # Errors
/// The kernel does not report the CPUs.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Lets this thread, and all threads that it starts later, run on any of `cpus`.
///
/// # Errors
/// The kernel does not let the thread run there.
pub fn unpin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Pins this thread to `cpu`. The thread already runs there when this function returns.
///
/// # Errors
/// The kernel does not let the thread run there.
pub fn pin(cpu: usize) -> io::Result<()> {
    unpin(&[cpu])
}

/// Runs this thread on each of `cpus` for a moment, and then restores the thread's earlier affinity. So every CPU stops
/// idling during the call.
///
/// # Errors
/// The kernel does not let the thread run there.
pub fn visit_each(cpus: &[usize]) -> io::Result<()> {
    let before = sched_getaffinity(None)?;
    cpus.iter().try_for_each(|&cpu| pin(cpu))?;
    Ok(sched_setaffinity(None, &before)?)
}

/// Pins another thread to `cpu`.
///
/// # Errors
/// The kernel does not let the thread run there.
pub fn pin_other(thread: Pid, cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(Some(thread), &set)?)
}
