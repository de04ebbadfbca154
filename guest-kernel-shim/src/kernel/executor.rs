// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs ready tasks in turn, and idles when no task is ready.
//!
//! [`schedule`] is the pass between two tasks, and between the last one and the idle loop, with interrupts
//! masked as in any scheduler. Before it lets the CPU idle, it searches the run queues of the other CPUs
//! for work ([`sched::balance`]). The search finds nothing to move, because every task belongs to its CPU.
//! So the measurements show the cost of the search, and the delay of a task that waits for the search to end.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use arch::insn;
use plan::CallBy;
use sched::balance::{Newidle, Queue};
use sched::load::Load;
use wait::request::{CALL, RESCHED};

use super::cpu::Usage;
use super::stats::Stat;
use super::table::{LIVE, OVERLOADED, is_called_by, online};
use super::task::{After, Task};
use super::{Cpu, calls, table, time, timer};
use crate::clock;
use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::setting::{Body, Idle};
use crate::wake::Waker;

/// Runs the tasks of this CPU, and serves calls, until the tasks of every CPU have ended.
pub struct Executor(pub &'static Cpu);

impl Body for Executor {
    const HAS_TASKS: bool = true;

    fn run(&mut self, mut idle: impl Idle) {
        let me = PerCpu::this();
        let cpu = self.0;
        loop {
            while let Some(task) = schedule(cpu, me, false) {
                run_task(cpu, me, task);
            }
            // The CPU counts as idle until a task is ready, or until all tasks have ended.
            update_load(cpu, true);
            let slept = clock::now();
            loop {
                if LIVE.load(Acquire) == 0 {
                    return;
                }
                cpu.stats.add(Stat::Idled);
                let taken = idle.wait(me);
                if taken & CALL != 0 || !cpu.calls.is_empty() {
                    calls::run_calls(cpu, Stat::Drained);
                }
                // A function that the idle loop called may have made a task ready, and no other
                // request will come for that task.
                if cpu.is_empty() && (taken & RESCHED == 0 || can_skip_scheduler(cpu)) {
                    continue;
                }
                if let Some(task) = schedule(cpu, me, true) {
                    note_woken(cpu, slept);
                    run_task(cpu, me, task);
                    break;
                }
            }
        }
    }
}

/// Whether the scheduler can be skipped, as `sm-idle` does: there is no task to run.
#[inline(always)]
fn can_skip_scheduler(cpu: &Cpu) -> bool {
    is_called_by(CallBy::SmIdle) && cpu.inbox.is_empty() && !cpu.rung.is_due()
}

/// Runs `task` until it stops.
fn run_task(cpu: &'static Cpu, me: &PerCpu, task: &'static Task) {
    cpu.stats.add(Stat::Switches);
    match task.run() {
        // The task stays runnable.
        After::Again => cpu.append_ready(task),
        After::Waits => {
            cpu.runnable.fetch_sub(1, AcqRel);
        }
        After::Ended => {
            cpu.runnable.fetch_sub(1, AcqRel);
            if LIVE.fetch_sub(1, AcqRel) == 1 {
                wake_others(cpu, me);
            }
        }
    }
}

/// Wakes the other CPUs, so that they see that the last task has ended.
fn wake_others(cpu: &Cpu, me: &PerCpu) {
    for other in online().filter(|other| other.index != cpu.index) {
        let target = percpu::all()[other.index];
        Waker::new(target, RESCHED, interrupts::RESCHED, false, false).wake(me);
    }
}

/// Makes a pass of the scheduler, and returns the next task, if there is one.
fn schedule(cpu: &'static Cpu, me: &PerCpu, from_idle: bool) -> Option<&'static Task> {
    insn::mask_irq();
    cpu.stats.add(Stat::Passes);
    if from_idle {
        cpu.stats.add(Stat::FromIdle);
    }
    // The bit is cleared before the inbox is read, because a task that arrives later sets the bit again.
    if me.request.pending() & RESCHED != 0 {
        me.request.take(RESCHED);
    }
    cpu.receive_ready();
    if cpu.rung.is_due() {
        timer::wake_expired(cpu);
    }
    let task = cpu.pop();
    if task.is_none() && !(from_idle && is_called_by(CallBy::SkipNewidle)) {
        search_for_work(cpu);
    }
    insn::unmask_irq();
    task
}

/// Searches other CPUs for work, if there can be any work and the search is worthwhile.
fn search_for_work(cpu: &Cpu) {
    cpu.stats.add(Stat::Newidle);
    let overloaded = OVERLOADED.is_set();
    if !cpu.usage.with(|usage| usage.newidle.is_worth(overloaded)) {
        return;
    }
    let queue = |index| {
        let other = table::cpu(index);
        Queue {
            tasks: other.runnable.load(Relaxed),
            load: other.load.load(Relaxed),
        }
    };
    let now = || time::ticks_to_ns(clock::now());
    let cpus = percpu::all().len();
    let search = |usage: &mut Usage| usage.newidle.search(cpu.index, cpus, now, queue);
    let found = cpu.usage.with(search);
    if found.overloaded == Some(false) {
        OVERLOADED.clear();
    }
    cpu.stats.add(Stat::Searches);
    cpu.stats.add_many(Stat::Looked, u64::from(found.looked));
}

/// Updates the load of this CPU, which has been running tasks if `running` is set, and has been idle otherwise.
fn update_load(cpu: &Cpu, running: bool) {
    let now = time::ticks_to_ns(clock::now());
    let average = cpu.usage.with(|usage| {
        usage.load.note(now.saturating_sub(usage.until_ns), running);
        usage.until_ns = now;
        usage.load.average()
    });
    cpu.load.store(average, Relaxed);
}

/// Notes that a task ended an idle period that began at `slept`, in ticks.
fn note_woken(cpu: &Cpu, slept: u64) {
    update_load(cpu, false);
    let idled = time::ticks_to_ns(clock::now() - slept);
    cpu.usage.with(|usage| usage.newidle.idled(idled));
}

impl Usage {
    /// Returns the usage of a CPU that was as busy as `load`, and then idled for a long time.
    pub fn from_load(load: Load, now_ns: u64) -> Self {
        Self {
            load,
            until_ns: now_ns,
            newidle: Newidle::new(),
        }
    }
}
