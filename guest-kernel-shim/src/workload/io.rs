// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `io`: a task per CPU submits one request at a time to a device, which answers after a
//! while. A sample is a request: it lasts from the submission until the task runs again.
//!
//! The seed decides whether a request reads or writes, how long the device takes for it, and which
//! CPU the device interrupts. A write differs from a read only in the time that the device takes.
//!
//! The device is simulated by a timer interrupt that the governor does not know of ([`crate::kernel::timer`]).
//! If the completion interrupts the submitting CPU, the timer of that CPU is used. If it interrupts the next CPU, that
//! CPU has a task that acts as the device: a function call is the doorbell, and the task wakes the submitter when the
//! time has come. Unlike the doorbell of a real device, this one disturbs that CPU, but only when the window of the
//! submitting CPU opens, not at the completion, where it would matter.

use core::iter;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use plan::{Cell, Workload};
use platform::MAX_CPUS;
use sched::random::Random;

use crate::clock;
use crate::kernel::channel::Channel;
use crate::kernel::device::{completion_cpu, note_completed, note_submitted};
use crate::kernel::stats::Stat;
use crate::kernel::timer::await_device;
use crate::kernel::{Cpu, calls};
use crate::percpu::{self, PerCpu};
use crate::workload::samples::{record, round_count, rounds};
use crate::workload::shared_state::CHANNELS;
use crate::workload::times::{self, Times};

/// When the device of each CPU answers, in ticks.
static ANSWERS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// Returns the doorbell channel and the completion channel of CPU `index`'s device.
fn channels(index: usize) -> (&'static Channel, &'static Channel) {
    (&CHANNELS[2 * index], &CHANNELS[2 * index + 1])
}

/// A request to a device.
struct Request {
    writes: bool,
    /// Whether the device interrupts the CPU that submitted the request.
    here: bool,
    /// How long the device takes, in ticks.
    takes: u64,
}

/// Returns the requests of CPU `from`; every call returns the same requests.
fn requests(cell: &Cell, from: usize) -> impl Iterator<Item = Request> + use<> {
    let (writes, here) = (cell.writes, cell.completion.percent());
    let means = [cell.device_us, cell.write_us].map(clock::us_to_ticks);
    let mut chance = times::random_stream(from as u64);
    let mut times = Times {
        random: Random::new(chance.draw()),
        spread: cell.spread,
        mean: 0,
    };
    let mut is_one_of = move |percent: u32| chance.below(100) < u64::from(percent);
    iter::repeat_with(move || {
        let writes = is_one_of(writes);
        times.mean = means[usize::from(writes)];
        Request {
            writes,
            here: is_one_of(here),
            takes: times.draw(),
        }
    })
}

/// Spawns the tasks of this CPU.
pub fn spawn(cell: &Cell, count: u32, gap: u64, cpu: &'static Cpu) {
    cpu.spawn(submit_requests(cpu, requests(cell, cpu.index), count, gap));
    let all = round_count(Workload::Io, count) as usize;
    for from in percpu::online().map(|each| each.index) {
        let elsewhere = requests(cell, from).take(all).filter(|one| !one.here);
        if completion_cpu(from) == cpu.index && from != cpu.index {
            cpu.spawn(play_device(from, elsewhere.count()));
        }
    }
}

async fn submit_requests(
    cpu: &'static Cpu,
    mut requests: impl Iterator<Item = Request>,
    count: u32,
    gap: u64,
) {
    let (_, completion) = channels(cpu.index);
    let to = completion_cpu(cpu.index);
    for recorded in rounds(Workload::Io, count) {
        let Some(request) = requests.next() else {
            return;
        };
        if gap != 0 {
            clock::pause(gap);
        }
        let start = clock::now();
        let answer = start + request.takes;
        note_submitted(cpu);
        if request.here {
            await_device(answer).await;
        } else {
            ANSWERS[cpu.index].store(answer, Release);
            calls::call_one(PerCpu::this(), to, ring_doorbell, cpu.index as u64);
            completion.receive().await;
        }
        let ticks = clock::now() - start;
        note_completed(cpu);
        if recorded {
            record(ticks);
            count_sample(cpu, request.writes, ticks);
        }
    }
}

/// Counts a sample as a read or a write.
fn count_sample(cpu: &Cpu, wrote: bool, ticks: u64) {
    let (number, sum) = match wrote {
        false => (Stat::Reads, Stat::Reading),
        true => (Stat::Writes, Stat::Writing),
    };
    cpu.stats.add(number);
    cpu.stats.add_many(sum, ticks);
}

/// Rings the doorbell of CPU `from`, on the CPU that its device interrupts.
fn ring_doorbell(_: &'static Cpu, from: u64) {
    channels(from as usize).0.post();
}

/// Acts as the device of CPU `from`, on the CPU that this device interrupts, for `count` requests.
async fn play_device(from: usize, count: usize) {
    let (doorbell, completion) = channels(from);
    for _ in 0..count {
        doorbell.receive().await;
        await_device(ANSWERS[from].load(Acquire)).await;
        completion.send().await;
    }
}
