// SPDX-License-Identifier: MIT OR Apache-2.0
//! Posts work for workers: jobs and functions for all CPUs, tasks for one CPU.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use arch::insn;
use arch::lock::Lock;
use plan::Cell;
pub use wait::post::clear_wake_up;
use wait::request::RESCHED;

use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::wake::Waker;

/// A part of a cell that is run without a pause.
#[derive(Clone, Copy)]
pub struct Job {
    /// The cell that the job belongs to.
    pub cell: Cell,
    /// The number of samples.
    pub count: u32,
    /// Whether time stamps are taken: see [`crate::workload::stages`].
    pub traced: bool,
}

/// The work that was posted last, and its number: members wait until the number changes.
///
/// Only [`wait::post::post`] changes it, so a CPU that finds work here has already got the wake-up for it.
pub static POSTED: Lock<Posted> = Lock::new(Posted {
    number: 0,
    work: None,
});

#[derive(Clone, Copy)]
pub struct Posted {
    /// The number of the job.
    pub number: u32,
    /// The work, once some has been posted.
    pub work: Option<Work>,
}

/// Work that is posted to all CPUs.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, in a variable, and nothing to allocate from"
)]
pub enum Work {
    /// A job of a measurement.
    Job(Job),
    /// A function for every CPU to run.
    All(fn()),
}

/// A task for one CPU.
#[derive(Clone, Copy)]
struct Task {
    /// The index of the CPU.
    index: usize,
    /// The function to run.
    run: fn(),
    /// Whether a CPU waits for the task's end.
    awaited: bool,
}

/// The task that was posted last, until it is taken; see [`run_on`] and [`start_on`]. Only [`wait::post::post`] changes
/// this, like [`POSTED`].
static TASK: Lock<Option<Task>> = Lock::new(None);
/// Number of members that have finished.
pub static DONE: AtomicU32 = AtomicU32::new(0);

/// Posts `work` and wakes the CPUs that the work is for; returns the number of the work.
pub fn post_work(me: &PerCpu, work: Work, cpus: impl Iterator<Item = &'static PerCpu>) -> u32 {
    let mut number = 0;
    let change = |posted: &mut Posted| {
        number = posted.number.wrapping_add(1);
        *posted = Posted {
            number,
            work: Some(work),
        };
    };
    wait::post::post(POSTED.lock(), change, || cpus.for_each(|cpu| wake(me, cpu)));
    number
}

/// Wakes `cpu`, for which there is work.
pub fn wake(me: &PerCpu, cpu: &'static PerCpu) {
    Waker::new(cpu, RESCHED, interrupts::RESCHED, false, false).wake(me);
}

/// Makes every CPU, including this one, run `task`, and waits until all have run it.
pub fn run_on_all(task: fn()) {
    let me = PerCpu::this();
    let others = percpu::online().skip(1);
    DONE.store(0, Release);
    post_work(me, Work::All(task), others.clone());
    task();
    wait_until(|| DONE.load(Acquire) as usize == others.clone().count());
}

/// Makes the second CPU run `task`, and returns at once.
pub fn run_on_2nd(task: fn()) {
    DONE.store(0, Release);
    run_on(percpu::all()[1], task);
}

/// Makes `cpu`, which must not be the first CPU, run `task`.
pub fn run_on(cpu: &'static PerCpu, task: fn()) {
    post_task(cpu, task, true);
}

/// Makes `cpu`, which must not be the first CPU, run `task`. No CPU waits for the end of the task:
/// the jobs of other CPUs continue meanwhile.
pub fn start_on(cpu: &'static PerCpu, task: fn()) {
    post_task(cpu, task, false);
}

fn post_task(cpu: &'static PerCpu, run: fn(), awaited: bool) {
    let task = Task {
        index: cpu.index,
        run,
        awaited,
    };
    let change = |slot: &mut Option<Task>| *slot = Some(task);
    wait::post::post(TASK.lock(), change, || wake(PerCpu::this(), cpu));
}

/// Runs the task that is posted for this CPU, if there is one.
pub fn serve_task(me: &PerCpu) {
    let task = TASK.lock().take_if(|task| task.index == me.index);
    if let Some(Task { run, awaited, .. }) = task {
        clear_wake_up(me);
        run();
        if awaited {
            DONE.fetch_add(1, AcqRel);
        }
    }
}

/// Waits until the second CPU has run its task.
pub fn wait_for_second() {
    wait_until(|| DONE.load(Acquire) == 1);
}

/// Prepares this CPU to be turned off in the middle of a task for all CPUs. When turned on again, it restarts the task.
pub fn set_rerun(me: &PerCpu) {
    me.unfinished.store(true, Release);
}

/// Waits until `reached` returns true, and lets an emulator run the other CPUs meanwhile.
pub fn wait_until(reached: impl Fn() -> bool) {
    while !reached() {
        insn::yield_now();
    }
}
