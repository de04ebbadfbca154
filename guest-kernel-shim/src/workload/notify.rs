// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `notify`: a task sends a request to a supervisor on another CPU, which examines the request and allows it
//! (`perf bench sched seccomp-notify`). A sample is a request and its answer. The open loop is in [`super::arrivals`].

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use plan::{Cell, Workload};

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::workload::samples::{record, round_count, rounds};
use crate::workload::shared_state::CHANNELS;

/// Request and answer of a pair.
struct Letter {
    request: AtomicU64,
    answer: AtomicU64,
}

static LETTERS: [Letter; 16] = [const {
    Letter {
        request: AtomicU64::new(0),
        answer: AtomicU64::new(0),
    }
}; 16];

/// Spawns the tasks of this CPU.
pub fn spawn(cell: &Cell, count: u32, gap: u64, cpu: &Cpu, cpus: usize) {
    let service = clock::us_to_ticks(cell.service_us);
    for pair in 0..cell.groups as usize {
        let [there, back] = &CHANNELS[2 * pair..][..2] else {
            unreachable!("two channels");
        };
        let letter = &LETTERS[pair];
        if 2 * pair % cpus == cpu.index {
            cpu.spawn(ask_supervisor(there, back, letter, count, gap));
        }
        let supervises = (2 * pair + 1) % cpus == cpu.index;
        // A supervisor that does no work has no code for work.
        match service {
            _ if !supervises => {}
            0 => cpu.spawn(answer_requests(there, back, letter, count, || {})),
            _ => cpu.spawn(answer_requests(there, back, letter, count, move || {
                clock::pause(service);
            })),
        }
    }
}

async fn ask_supervisor(
    there: &'static Channel,
    back: &'static Channel,
    letter: &'static Letter,
    count: u32,
    gap: u64,
) {
    for (n, recorded) in (1..).zip(rounds(Workload::Notify, count)) {
        if gap != 0 {
            clock::pause(gap);
        }
        let start = clock::now();
        letter.request.store(n, Release);
        there.send().await;
        back.receive().await;
        assert!(
            letter.answer.load(Acquire) == n,
            "an answer to another request"
        );
        let ticks = clock::now() - start;
        if recorded {
            record(ticks);
        }
    }
}

async fn answer_requests(
    there: &'static Channel,
    back: &'static Channel,
    letter: &'static Letter,
    count: u32,
    work: impl Fn(),
) {
    for _ in 0..round_count(Workload::Notify, count) {
        there.receive().await;
        work();
        letter.answer.store(letter.request.load(Acquire), Release);
        back.send().await;
    }
}
