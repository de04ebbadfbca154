// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logs of the two CPUs of a round trip, which record where they were: the guest logs its polls and halts, and EL2
//! its exits.

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
pub fn place(pool: &mut Pool) {
    // SAFETY: zeroed memory of that size, which is all theirs; all zeroes is empty logs.
    let logs = unsafe { &*(pool.take(size_of::<[Logs; CPUS]>() as u64) as *const _) };
    LOGS.call_once(|| logs);
}

/// Returns the logs of the CPU that measures and of the other CPU, once there is memory for them.
pub fn all_logs() -> Option<&'static [Logs; CPUS]> {
    LOGS.get().copied()
}

/// Makes `cpu` the CPU that measures from now on. The job that is posted next orders this for the other CPU.
pub fn begin(cpu: &PerCpu) {
    NEAR.store(cpu.index, Relaxed);
}

/// Returns the logs of `cpu`, which is one of the two.
pub fn logs(cpu: &PerCpu) -> Option<&'static Logs> {
    Some(&all_logs()?[usize::from(cpu.index != NEAR.load(Relaxed))])
}
