// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `timer`: a task per CPU wakes up at times `gap-us` apart (cyclictest). A sample is the delay of a wake-up.

use plan::Workload;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::timer::sleep_until;
use crate::workload::samples::{record, rounds};

/// Spawns the task of this CPU.
pub fn spawn(count: u32, period: u64, cpu: &Cpu) {
    cpu.spawn(sleep_repeatedly(count, period));
}

async fn sleep_repeatedly(count: u32, period: u64) {
    let mut deadline = clock::now();
    for recorded in rounds(Workload::Timer, count) {
        deadline += period;
        sleep_until(deadline).await;
        let late = clock::now() - deadline;
        if recorded {
            record(late);
        }
    }
}
