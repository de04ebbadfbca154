// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `frames`: a display asks for a frame every `gap-us`, and three tasks on three CPUs make the frame, one after
//! the other, like the UI thread, the render thread and the compositor of a phone. A sample is a frame, from the time
//! at which it was meant to begin to the end of its composition. A frame is late if this takes longer than the period.
//!
//! The first task waits for that time, works, passes the frame to the second task and waits until that task has
//! copied it: a short wait, followed by a long wait for the next frame. The second task works on the frame, and
//! passes it to the third. The time of each task's work is drawn from the seed, uniformly between 0.5 and 1.5
//! times its mean: the draws differ between blocks, and are equal in all cells. The means are shares of the
//! period, so that the load is equal for every period, and a few frames in a hundred take longer than the period.

use core::hint::black_box;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use plan::{Spread, Workload};

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::kernel::stats::Stat;
use crate::kernel::timer::sleep_until;
use crate::workload::samples::{record, rounds};
use crate::workload::shared_state::CHANNELS;
use crate::workload::times::{self, Times};

/// Average work of a frame, in per cent of the period: to run the UI, to copy the frame, to render it,
/// and to compose it. A frame takes 72 % on average and at most 108 %, and even without the cost of
/// wake-ups, one in 200 is late.
const SHARES: [u64; 4] = [20, 5, 35, 12];
const UI: usize = 0;
const COPY: usize = 1;
const RENDER: usize = 2;
const COMPOSE: usize = 3;

/// Rounds of the working loop between two reads of the clock: a microsecond or less.
const ROUNDS: u32 = 256;

/// Number of frames whose times are kept. A channel holds fewer frames, so no time is overwritten
/// before it is read.
const KEPT: usize = 512;

/// When the block began.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The times at which a task has passed frames on, by frame number.
struct Handed([AtomicU64; KEPT]);

static TO_RENDER: Handed = Handed([const { AtomicU64::new(0) }; KEPT]);
static TO_COMPOSE: Handed = Handed([const { AtomicU64::new(0) }; KEPT]);

impl Handed {
    /// Records that frame `number` is passed on now. The channel makes the receiver see this.
    fn note_handed_on(&self, number: u32) {
        self.0[number as usize % KEPT].store(clock::now(), Relaxed);
    }

    /// Returns the ticks since frame `number` was passed on or, if that was later, since the receiver was `ready` for
    /// it: these ticks are the avoidable part of the receiver's wait.
    fn ticks_since(&self, number: u32, ready: u64) -> u64 {
        clock::now() - self.0[number as usize % KEPT].load(Relaxed).max(ready)
    }
}

/// Spawns the tasks of this CPU.
pub fn spawn(count: u32, period: u64, cpu: &'static Cpu, cpus: usize) {
    let works = |task: usize| task % cpus == cpu.index;
    if works(0) {
        cpu.spawn(update_frames(cpu, count, period));
    }
    if works(1) {
        cpu.spawn(render_frames(cpu, count, period));
    }
    if works(2) {
        cpu.spawn(compose_frames(cpu, count, period));
    }
}

/// Returns the channels for frames to render, frames that were copied, and frames to compose.
fn channels() -> [&'static Channel; 3] {
    core::array::from_fn(|n| &CHANNELS[n])
}

async fn update_frames(cpu: &'static Cpu, count: u32, period: u64) {
    let [to_render, copied, _] = channels();
    let mut times = work_times(UI, period);
    let begun = clock::now();
    BEGUN.store(begun, Release);
    for (number, recorded) in (0..).zip(rounds(Workload::Frames, count)) {
        let (ready, due) = (clock::now(), frame_begin(begun, number, period));
        sleep_until(due).await;
        if recorded {
            let waited = clock::now() - due.max(ready);
            cpu.stats.add_many(Stat::Beginning, waited);
        }
        work_for(times.draw());
        TO_RENDER.note_handed_on(number);
        to_render.send().await;
        copied.receive().await;
    }
}

async fn render_frames(cpu: &'static Cpu, count: u32, period: u64) {
    let [to_render, copied, to_compose] = channels();
    let [mut copying, mut rendering] = [COPY, RENDER].map(|which| work_times(which, period));
    for (number, recorded) in (0..).zip(rounds(Workload::Frames, count)) {
        let ready = clock::now();
        to_render.receive().await;
        if recorded {
            let waited = TO_RENDER.ticks_since(number, ready);
            cpu.stats.add_many(Stat::Rendering, waited);
        }
        work_for(copying.draw());
        copied.send().await;
        work_for(rendering.draw());
        TO_COMPOSE.note_handed_on(number);
        to_compose.send().await;
    }
}

async fn compose_frames(cpu: &'static Cpu, count: u32, period: u64) {
    let [_, _, to_compose] = channels();
    let mut times = work_times(COMPOSE, period);
    for (number, recorded) in (0..).zip(rounds(Workload::Frames, count)) {
        let ready = clock::now();
        to_compose.receive().await;
        let waited = TO_COMPOSE.ticks_since(number, ready);
        work_for(times.draw());
        let ticks = clock::now() - frame_begin(BEGUN.load(Acquire), number, period);
        if recorded {
            record(ticks);
            cpu.stats.add(Stat::Frames);
            cpu.stats.add_many(Stat::Late, u64::from(ticks > period));
            cpu.stats.add_many(Stat::Composing, waited);
        }
    }
}

/// Returns when frame `number` is meant to begin.
fn frame_begin(begun: u64, number: u32, period: u64) -> u64 {
    begun + (u64::from(number) + 1) * period
}

/// Returns the times of part `which` of the work, frame by frame.
fn work_times(which: usize, period: u64) -> Times {
    Times {
        random: times::random_stream(which as u64),
        spread: Spread::Uniform,
        mean: period * SHARES[which] / 100,
    }
}

/// Works for `ticks`, and from time to time lets an emulator run the other CPUs.
fn work_for(ticks: u64) {
    let end = clock::now() + ticks;
    while clock::now() < end {
        (0..ROUNDS).for_each(|round| {
            black_box(round);
        });
        arch::insn::yield_now();
    }
}
