// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `messaging`: groups of 20 senders and 20 receivers. In every loop, each sender sends a
//! message to each receiver of its group (`perf bench sched messaging`, hackbench). A sample is one
//! loop of a sender.

use plan::Workload;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::workload::samples::{record, round_count, rounds};
use crate::workload::shared_state::{CHANNELS, EACH};

/// Spawns the tasks of this CPU; tasks are dealt out to the CPUs in turn.
pub fn spawn(groups: u32, count: u32, cpu: &Cpu, cpus: usize) {
    let loops = round_count(Workload::Messaging, count);
    let messages = u64::from(loops) * EACH as u64;
    for group in 0..groups as usize {
        let channels = &CHANNELS[group * EACH..][..EACH];
        for (n, channel) in channels.iter().enumerate() {
            let place = group * 2 * EACH + 2 * n;
            if place % cpus == cpu.index {
                cpu.spawn(send_messages(channels, count));
            }
            // Receivers are placed on the next CPU, so that messages cross CPUs if there are two.
            if (place + 1) % cpus == cpu.index {
                cpu.spawn(receive_messages(channel, messages));
            }
        }
    }
}

async fn send_messages(channels: &'static [Channel], count: u32) {
    for recorded in rounds(Workload::Messaging, count) {
        let start = clock::now();
        for channel in channels {
            channel.send().await;
        }
        let ticks = clock::now() - start;
        if recorded {
            record(ticks);
        }
    }
}

async fn receive_messages(channel: &'static Channel, messages: u64) {
    for _ in 0..messages {
        channel.receive().await;
    }
}
