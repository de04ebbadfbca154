// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds CPUs and tasks by their numbers, and makes tasks of other CPUs ready.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use plan::{CallBy, Cell, Wake};
use spin::once::Once;
use wait::request::RESCHED;

use super::cpu::Cpu;
use super::stats::Stat;
use super::task::Task;
use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::wake::Waker;

/// The CPUs, once they are created.
pub static CPUS: Once<&'static [&'static Cpu]> = Once::new();
/// The tasks of all CPUs.
pub static TABLE: Once<&'static [Task]> = Once::new();
/// Number of tasks that have not ended.
pub static LIVE: AtomicU32 = AtomicU32::new(0);

/// Whether a CPU has, or recently had, more than one ready task: this is Linux's `overload` of a
/// root domain, on its own cache line.
#[repr(align(64))]
pub struct Overloaded(AtomicBool);

/// The flag of the running block.
pub static OVERLOADED: Overloaded = Overloaded(AtomicBool::new(false));

impl Overloaded {
    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sets the flag. Writes the cache line only if the flag changes, because every CPU reads it.
    pub fn set(&self) {
        if !self.is_set() {
            self.0.store(true, Relaxed);
        }
    }

    /// Clears the flag, because a search of every CPU found no CPU with several ready tasks, or because a block begins.
    pub fn clear(&self) {
        self.0.store(false, Relaxed);
    }
}

/// Returns the CPU with number `index`.
#[inline(always)]
pub fn cpu(index: usize) -> &'static Cpu {
    CPUS.get().expect("the kernel is created before it is used")[index]
}

/// Returns every CPU that runs.
pub fn online() -> impl Iterator<Item = &'static Cpu> + Clone {
    percpu::online().map(|each| cpu(each.index))
}

/// Returns the task with number `number`.
#[inline(always)]
pub fn task(number: u32) -> &'static Task {
    &TABLE.get().expect("tasks are created before they are used")[number as usize]
}

/// Puts a task into a queue of its CPU, after the task's state has become queued.
pub fn enqueue(task: &'static Task) {
    let me = PerCpu::this();
    let here = cpu(me.index);
    let home = cpu(task.home);
    if task.home == me.index && !here.in_handler.load(Relaxed) {
        here.stats.add(Stat::Local);
        home.push(task);
        return;
    }
    home.inbox.push(task.number, &task.inbox);
    home.count_ready();
    if task.home == me.index {
        // A handler of this CPU may call this: the executor reads the request word before it goes on.
        me.request.wake(RESCHED, false);
        me.interrupted.store(true, Relaxed);
    } else {
        here.stats.add(Stat::Remote);
        waker(task.home).wake(me);
    }
}

/// Shared state of the running block, on its own cache line.
#[repr(align(64))]
pub struct Common {
    /// How calls reach a CPU that polls: a [`CallBy`].
    call_by: AtomicU32,
    /// Whether a CPU that polls gets no interrupt.
    elide: AtomicBool,
    /// Whether a CPU that polls waits for an event.
    pub event: AtomicBool,
}

/// The state of the running block.
pub static COMMON: Common = Common {
    call_by: AtomicU32::new(0),
    elide: AtomicBool::new(false),
    event: AtomicBool::new(false),
};

impl Common {
    /// Sets the shared state, before the block begins.
    pub fn set_for_cell(&self, cell: &Cell) {
        let by = match cell.wake {
            Wake::Ipi => CallBy::Ipi,
            Wake::Elide => cell.call_by,
        };
        self.call_by.store(by as u32, Relaxed);
        self.elide.store(cell.wake.elides(), Relaxed);
        self.event.store(cell.wait.needs_sev(), Release);
    }
}

/// Whether calls reach a polling CPU in the way `by`.
#[inline(always)]
pub fn is_called_by(by: CallBy) -> bool {
    COMMON.call_by.load(Relaxed) == by as u32
}

/// Returns the waker of a CPU's executor.
#[inline(always)]
pub fn waker(index: usize) -> Waker {
    let target = percpu::all()[index];
    let elide = COMMON.elide.load(Relaxed);
    let event = COMMON.event.load(Relaxed);
    Waker::new(target, RESCHED, interrupts::RESCHED, elide, event)
}
