// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io`: a task per CPU asks a device, one request at a time, which answers after
//! a while. A sample is a request, from its submission to the task running again.
//!
//! The device is simulated by a timer interrupt that the governor does not know
//! of ([`crate::kernel::timer`]). Where the completion interrupts the submitting
//! CPU, the timer is that CPU's. Where it interrupts the next one, that CPU has
//! a task that plays the device: a function call is the doorbell, and the task
//! wakes the one that submitted when the time has come. The doorbell disturbs
//! that CPU, as none of a real device would; it comes when the window of the
//! submitting CPU opens, and not when it matters, at the completion.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use plan::{Cell, Completion, Workload};
use platform::MAX_CPUS;

use crate::clock;
use crate::kernel::channel::Channel;
use crate::kernel::device::{completed, completes_on, submitted};
use crate::kernel::timer::device_until;
use crate::kernel::{self, Cpu, calls};
use crate::percpu::PerCpu;
use crate::workload::samples::{made, record, rounds};
use crate::workload::shared::CHANNELS;
use crate::workload::times::{self, Times};

/// When the device of each CPU answers, ticks.
static ANSWERS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Doorbell and completion of the device of CPU `index`.
fn channels(index: usize) -> (&'static Channel, &'static Channel) {
    (&CHANNELS[2 * index], &CHANNELS[2 * index + 1])
}

/// Begins the tasks of this CPU.
pub fn spawn(cell: &Cell, count: u32, gap: u64, cpu: &'static Cpu, cpus: usize) {
    let times = Times {
        random: times::random(cpu.index as u64),
        spread: cell.spread,
        mean: clock::ticks(cell.device_us),
    };
    let to = completes_on(cell, cpu);
    cpu.spawn(submit(cpu, to, count, gap, times));
    if cell.completion == Completion::Other {
        let from =
            (0..cpus).filter(|&from| completes_on(cell, kernel::table::cpu(from)) == cpu.index);
        from.for_each(|from| cpu.spawn(play(from, count)));
    }
}

async fn submit(cpu: &'static Cpu, to: usize, count: u32, gap: u64, mut times: Times) {
    let (_, completion) = channels(cpu.index);
    for recorded in rounds(Workload::Io, count) {
        if gap != 0 {
            clock::pause(gap);
        }
        let start = clock::now();
        let answer = start + times.draw();
        submitted(cpu);
        if to == cpu.index {
            device_until(answer).await;
        } else {
            ANSWERS[cpu.index].store(answer, Release);
            calls::single(PerCpu::this(), to, ring, cpu.index as u64);
            completion.receive().await;
        }
        let ticks = clock::now() - start;
        completed(cpu);
        if recorded {
            record(ticks);
        }
    }
}

/// The doorbell, on the CPU that the device interrupts.
fn ring(_: &'static Cpu, from: u64) {
    channels(from as usize).0.post();
}

/// The device of CPU `from`, on the CPU that it interrupts.
async fn play(from: usize, count: u32) {
    let (doorbell, completion) = channels(from);
    for _ in 0..made(Workload::Io, count) {
        doorbell.receive().await;
        device_until(ANSWERS[from].load(Acquire)).await;
        completion.send().await;
    }
}
