// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `pipe`: pairs of tasks on two CPUs pass a token back and forth (`perf bench sched pipe`). A
//! sample is a round trip. `pingpong` does the same without the executor.

use plan::Workload;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::workload::samples::{record, round_count, rounds};
use crate::workload::shared_state::CHANNELS;

/// Spawns the tasks of this CPU.
pub fn spawn(pairs: u32, count: u32, gap: u64, cpu: &Cpu, cpus: usize) {
    for pair in 0..pairs as usize {
        let [there, back] = &CHANNELS[2 * pair..][..2] else {
            unreachable!("two channels");
        };
        if 2 * pair % cpus == cpu.index {
            cpu.spawn(send_messages(there, back, count, gap));
        }
        if (2 * pair + 1) % cpus == cpu.index {
            cpu.spawn(return_messages(there, back, count));
        }
    }
}

async fn send_messages(there: &'static Channel, back: &'static Channel, count: u32, gap: u64) {
    for recorded in rounds(Workload::Pipe, count) {
        if gap != 0 {
            clock::pause(gap);
        }
        let start = clock::now();
        there.send().await;
        back.receive().await;
        let ticks = clock::now() - start;
        if recorded {
            record(ticks);
        }
    }
}

async fn return_messages(there: &'static Channel, back: &'static Channel, count: u32) {
    for _ in 0..round_count(Workload::Pipe, count) {
        there.receive().await;
        back.send().await;
    }
}
