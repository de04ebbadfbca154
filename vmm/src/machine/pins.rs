// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the CPUs of the host for the vCPUs: one for each vCPU, on which no other thread of this program runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Obstacle;

/// The CPUs on which threads run.
#[derive(Debug)]
pub struct Places {
    /// One CPU for each vCPU, in the order of the vCPUs.
    pub vcpus: Vec<usize>,
    /// CPUs for all other threads: the remaining ones, or any if none remain.
    pub rest: Vec<usize>,
}

/// Returns the CPUs that `pins` names for `cpus` vCPUs, or else chooses among the CPUs that this process may use. The
/// vCPUs get the last of these CPUs, since hosts tend to serve interrupts on the first ones.
pub fn choose_cpus(cpus: usize, pins: Option<&[usize]>) -> Result<Places, Obstacle> {
    let usable = usable_cpus()?;
    let vcpus = match pins {
        Some(pins) => check_pins(pins, cpus)?,
        None if usable.len() < cpus => {
            return Err(Obstacle(format!(
                "--cpus {cpus}: each vCPU needs a CPU, and this process may use {}; \
                 use --cpus {}, or a machine with more",
                usable.len(),
                usable.len()
            )));
        }
        None => usable[usable.len() - cpus..].to_vec(),
    };
    let others = usable.iter().copied().filter(|cpu| !vcpus.contains(cpu));
    let mut rest: Vec<usize> = others.collect();
    if rest.is_empty() {
        rest = usable;
    }
    Ok(Places { vcpus, rest })
}

/// Returns the CPUs that this process may use.
fn usable_cpus() -> Result<Vec<usize>, Obstacle> {
    let set = sched_getaffinity(None)
        .map_err(|error| Obstacle(format!("CPUs of this machine can't be asked for ({error})")))?;
    let cpus = 0..CpuSet::MAX_CPU;
    Ok(cpus.filter(|&cpu| set.is_set(cpu)).collect())
}

/// Returns the CPUs in `pins` if there is one for each vCPU. Only [`run_on`] checks whether a thread may run on these
/// CPUs: if the parent process keeps away from them, this process inherits an affinity mask without them.
fn check_pins(pins: &[usize], cpus: usize) -> Result<Vec<usize>, Obstacle> {
    if pins.len() != cpus {
        return Err(Obstacle(format!(
            "--pin: {} CPUs are named, and there are {cpus} vCPUs; name one for each, or use --cpus {}",
            pins.len(),
            pins.len()
        )));
    }
    for (n, cpu) in pins.iter().enumerate() {
        if pins[..n].contains(cpu) {
            return Err(Obstacle(format!(
                "--pin: CPU {cpu} is named twice; name another CPU for each vCPU"
            )));
        }
        if *cpu >= CpuSet::MAX_CPU {
            return Err(Obstacle(format!(
                "--pin: there is no CPU {cpu}; name others, below {}",
                CpuSet::MAX_CPU
            )));
        }
    }
    Ok(pins.to_vec())
}

/// Pins the calling thread, and all threads that it starts later, to `cpus`.
pub fn run_on(cpus: &[usize]) -> Result<(), Obstacle> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|error| {
        Obstacle(format!(
            "this process can't be pinned to CPUs {cpus:?} ({error}); name others by --pin"
        ))
    })
}
