// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs of the host the vCPUs run on: one each, and nothing else of ours there.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Obstacle;

/// Where threads run.
#[derive(Debug)]
pub struct Places {
    /// The vCPUs, in their order.
    pub vcpus: Vec<usize>,
    /// Everything else: other CPUs, or any if there are no others.
    pub rest: Vec<usize>,
}

/// Chooses for `cpus` vCPUs among the CPUs that this process may use, unless they are named
/// by `pins`. The last ones are for vCPUs: hosts tend to serve interrupts on their first.
pub fn choose(cpus: usize, pins: Option<&[usize]>) -> Result<Places, Obstacle> {
    let usable = usable()?;
    let vcpus = match pins {
        Some(pins) => named(pins, cpus)?,
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

/// The CPUs that this process may use.
fn usable() -> Result<Vec<usize>, Obstacle> {
    let set = sched_getaffinity(None)
        .map_err(|error| Obstacle(format!("CPUs of this machine can't be asked for ({error})")))?;
    let cpus = 0..CpuSet::MAX_CPU;
    Ok(cpus.filter(|&cpu| set.is_set(cpu)).collect())
}

/// The CPUs that were named, if they are as many as the vCPUs. [`run_on`] checks whether a thread may run
/// there: a process that keeps away from CPUs also excludes them for those that it starts.
fn named(pins: &[usize], cpus: usize) -> Result<Vec<usize>, Obstacle> {
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

/// Pins the calling thread, and those that it starts, to `cpus`.
pub fn run_on(cpus: &[usize]) -> Result<(), Obstacle> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|error| {
        Obstacle(format!(
            "this process can't be pinned to CPUs {cpus:?} ({error}); name others by --pin"
        ))
    })
}
