// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the state of the kernel for one CPU, and its run queue.

use core::future::Future;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

use cpuidle::Device;
use sched::balance::Newidle;
use sched::list::List;
use sched::load::Load;
use spin::mutex::SpinMutex;

use super::clockwork::{Clockwork, Rung};
use super::handoff::Call;
use super::local::Local;
use super::memory::Memory;
use super::stats::{Stats, Totals};
use super::steps::Steps;
use super::table::{LIVE, OVERLOADED, task};
use super::task::Task;

/// Number of tasks that a CPU can have.
pub const TASKS: usize = 640;

/// State of the kernel for one CPU.
#[repr(align(64))]
pub struct Cpu {
    /// The CPU's number.
    pub index: usize,
    /// Tasks that other CPUs have made ready.
    pub inbox: List,
    /// Function calls that the CPU has to serve.
    pub calls: List,
    /// Number of tasks that run or are ready; other CPUs read this.
    pub runnable: AtomicU32,
    /// The CPU's average load; other CPUs read this.
    pub load: AtomicU32,
    /// The functions that the CPU uses to idle when it is governed.
    pub steps: Steps,
    /// Whether the CPU is in an interrupt handler of this kernel.
    pub in_handler: AtomicBool,
    /// Numbers of the first and last tasks in the CPU's run queue, each plus one.
    first: AtomicU32,
    last: AtomicU32,
    /// Deadlines.
    pub timers: Local<Clockwork>,
    /// Events of the CPU's timer: see [`super::timer`].
    pub rung: Rung,
    /// The CPU's utilisation, up to a certain time.
    pub usage: Local<Usage>,
    /// The CPU's idle states, its governor and their statistics.
    pub device: Local<Option<Device>>,
    /// The function calls that the CPU makes, one per target.
    pub outgoing: &'static [Call],
    /// Memory of the futures of the CPU's tasks.
    pub memory: Local<Memory>,
    /// The CPU's counters.
    pub stats: Stats,
    /// The CPU's utilisation when the last block ended, or when the next one begins.
    pub busy: SpinMutex<Load>,
    /// The CPU's counts in the last block.
    pub totals: SpinMutex<Totals>,
}

/// The utilisation of a CPU.
#[derive(Default)]
pub struct Usage {
    /// The average.
    pub load: Load,
    /// End of the time that the average includes, in ns.
    pub until_ns: u64,
    /// Decides whether the CPU searches for work before it idles.
    pub newidle: Newidle,
}

impl Cpu {
    /// Returns a CPU without tasks.
    pub fn new(index: usize, memory: Memory, outgoing: &'static [Call]) -> Self {
        Self {
            index,
            inbox: List::new(),
            calls: List::new(),
            runnable: AtomicU32::new(0),
            load: AtomicU32::new(0),
            steps: Steps::new(),
            in_handler: AtomicBool::new(false),
            first: AtomicU32::new(0),
            last: AtomicU32::new(0),
            timers: Local::new(index, Clockwork::new()),
            rung: Rung::new(),
            usage: Local::new(index, Usage::default()),
            device: Local::new(index, None),
            outgoing,
            memory: Local::new(index, memory),
            stats: Stats::new(),
            busy: SpinMutex::new(Load::new()),
            totals: SpinMutex::new(Totals::ZERO),
        }
    }

    /// Spawns a task on this CPU, before the block begins.
    ///
    /// # Panics
    /// Panics if the CPU already has [`TASKS`] tasks.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let first = self.index * TASKS;
        let free = (first..first + TASKS).find(|&n| task(n as u32).is_free());
        let task = task(free.expect("a CPU has room for the tasks of every workload") as u32);
        task.set_future(self.memory.with(|memory| memory.place_future(future)));
        LIVE.fetch_add(1, AcqRel);
        self.push(task);
    }

    /// Puts a ready task at the end of the run queue, which only this CPU uses.
    pub fn push(&self, task: &Task) {
        self.count_ready();
        self.append_ready(task);
    }

    /// Counts a task that became ready. If another task runs or is ready, records that another CPU could take a task.
    pub fn count_ready(&self) {
        if self.runnable.fetch_add(1, AcqRel) != 0 {
            OVERLOADED.set();
        }
    }

    /// Like [`Self::push`], but for a task that already counts as runnable.
    pub fn append_ready(&self, new: &Task) {
        new.next.store(0, Relaxed);
        let number = new.number + 1;
        match self.last.load(Relaxed).checked_sub(1) {
            Some(last) => task(last).next.store(number, Relaxed),
            None => self.first.store(number, Relaxed),
        }
        self.last.store(number, Relaxed);
    }

    /// Removes and returns the first ready task.
    pub fn pop(&self) -> Option<&'static Task> {
        let first = task(self.first.load(Relaxed).checked_sub(1)?);
        match first.next() {
            Some(next) => self.first.store(next + 1, Relaxed),
            None => {
                self.first.store(0, Relaxed);
                self.last.store(0, Relaxed);
            }
        }
        Some(first)
    }

    /// Whether no task is ready.
    pub fn is_empty(&self) -> bool {
        self.first.load(Relaxed) == 0
    }

    /// Moves the tasks that other CPUs have made ready to the run queue.
    pub fn receive_ready(&self) {
        if !self.inbox.is_empty() {
            for number in self.inbox.take(|number| &task(number).inbox) {
                self.append_ready(task(number));
            }
        }
    }

    /// Passes the device that chooses this CPU's idle states to `work`.
    ///
    /// # Panics
    /// Panics if there is no device.
    pub fn with_device<R>(&self, work: impl FnOnce(&mut Device) -> R) -> R {
        self.device.with(|device| {
            let device = device.as_mut().expect("a CPU idles by governor");
            work(device)
        })
    }
}
