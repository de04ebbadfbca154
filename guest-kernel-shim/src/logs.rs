// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the logs of the two CPUs of a round trip, which record where each CPU was: the guest logs
//! its polls and halts, and EL2 logs its exits.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use abi::TimeLog;
use pages::Pool;
use parts::CPUS;
use spin::once::Once;

use crate::percpu::PerCpu;

/// The logs of a CPU: the guest's and EL2's.
pub type Logs = [TimeLog; 2];

static LOGS: Once<&'static [Logs; CPUS]> = Once::new();

/// Index of the CPU that measures, which has the first logs.
static NEAR: AtomicUsize = AtomicUsize::new(0);

/// Places empty logs in memory of `pool`.
pub fn place_logs(pool: &mut Pool) {
    // SAFETY: this is zeroed memory of that size, which only the logs use, and logs that are all zero are empty.
    let logs = unsafe { &*(pool.take(size_of::<[Logs; CPUS]>() as u64) as *const _) };
    LOGS.call_once(|| logs);
}

/// Returns the logs of the CPU that measures and of the other CPU, once there is memory for them.
pub fn all_logs() -> Option<&'static [Logs; CPUS]> {
    LOGS.get().copied()
}

/// Makes `cpu` the CPU that measures from now on. The other CPU sees the change with the next posted job.
pub fn set_measuring_cpu(cpu: &PerCpu) {
    NEAR.store(cpu.index, Relaxed);
}

/// Returns the logs of `cpu`, which has to be one of the two CPUs.
pub fn cpu_logs(cpu: &PerCpu) -> Option<&'static Logs> {
    Some(&all_logs()?[usize::from(cpu.index != NEAR.load(Relaxed))])
}
