// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small kernel: what a CPU does between two wake-ups, when that is more than
//! to answer the last one.
//!
//! Every CPU has an executor of `async` tasks ([`executor`], [`mod@task`]). A task
//! stays on its CPU. To wake one of another CPU is to put it into that CPU's
//! inbox, a list without lock, and to set RESCHED in its request word; whether
//! there is an interrupt as well is the word's matter ([`wait::request`]), as
//! for every wake-up here. Tasks sleep by the CPU's virtual timer ([`timer`]) and
//! wait for each other in [`channel`]s; a function is called on another CPU by
//! [`calls`].
//!
//! A CPU without a ready task idles, in any of the ways of [`crate::idle`]: they
//! are the same loops that `pingpong` measures without all this. Waits called
//! `governor:<name>` choose among the idle states of crate `cpuidle`
//! ([`governed`]).
//!
//! Interrupt handlers of this kernel wake tasks only through the inbox, and
//! touch nothing else that the executor uses, so the executor runs with
//! interrupts enabled, but for the pass of its scheduler.

pub mod block;
pub mod calls;
pub mod channel;
pub mod cpu;
pub mod executor;
pub mod force;
pub mod governed;
pub mod local;
pub mod memory;
pub mod stats;
pub mod task;
pub mod time;
pub mod timer;

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use arrayvec::ArrayVec;
use pages::{PAGE, Pool};
use plan::{CallBy, Cell, Wake};
use platform::MAX_CPUS;
use spin::once::Once;
use wait::request::RESCHED;

pub use self::cpu::Cpu;
use self::cpu::TASKS;
use self::memory::Memory;
use self::stats::Stat;
use self::task::Task;
use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::wake::Waker;

static CPUS: Once<ArrayVec<&'static Cpu, MAX_CPUS>> = Once::new();
static TABLE: Once<&'static [Task]> = Once::new();
/// Tasks that have not ended.
static LIVE: AtomicU32 = AtomicU32::new(0);

/// Bytes of the pool that [`create`] takes for each CPU, but for the last page of the
/// tasks.
pub const NEEDS: u64 = (TASKS * size_of::<Task>()) as u64
    + memory::SIZE as u64
    + (size_of::<Cpu>() as u64).next_multiple_of(PAGE);

/// Allocates what every CPU has.
pub fn create(pool: &mut Pool, cpus: usize) {
    TABLE.call_once(|| {
        let task = |n| Task::new(n as u32, n / TASKS);
        pool.fill((0..cpus * TASKS).map(task))
    });
    let mut cpu = |index| -> &'static Cpu {
        let memory = Memory::new(pool);
        let outgoing = (0..cpus).map(|_| calls::Call::new()).collect();
        let cpu = Cpu::new(index, memory, outgoing);
        &pool.fill(core::iter::once(cpu))[0]
    };
    CPUS.call_once(|| (0..cpus).map(&mut cpu).collect());
}

/// The CPU with a number.
#[inline(always)]
pub fn cpu(index: usize) -> &'static Cpu {
    CPUS.get().expect("the kernel is created before it is used")[index]
}

/// Every CPU that runs.
pub fn online() -> impl Iterator<Item = &'static Cpu> + Clone {
    percpu::online().map(|each| cpu(each.index))
}

/// The task with a number.
#[inline(always)]
pub fn task(number: u32) -> &'static Task {
    &TABLE.get().expect("tasks are created before they are used")[number as usize]
}

/// Makes a task ready whose state has just said so.
fn enqueue(task: &'static Task) {
    let me = PerCpu::this();
    let here = cpu(me.index);
    let home = cpu(task.home);
    if task.home == me.index && !here.in_handler.load(Relaxed) {
        here.stats.add(Stat::Local);
        home.push(task);
        return;
    }
    home.inbox.push(task.number, &task.inbox);
    home.runnable.fetch_add(1, AcqRel);
    if task.home == me.index {
        // Own handler: the executor looks at the word before it goes on.
        me.request.wake(RESCHED, false);
        me.interrupted.store(true, Relaxed);
    } else {
        here.stats.add(Stat::Remote);
        waker(task.home).wake(me);
    }
}

/// The interrupt handler's part: `false` if the interrupt is not this kernel's.
pub fn interrupt(me: &PerCpu, intid: u32) -> bool {
    let Some(cpus) = CPUS.get() else { return false };
    let cpu = cpus[me.index];
    if !cpu.rung.is_on() {
        return false;
    }
    cpu.in_handler.store(true, Relaxed);
    let mine = match intid {
        interrupts::FUNCTION => {
            calls::drain(cpu, Stat::Interrupted);
            true
        }
        _ if intid == crate::start::platform().timer.virt => {
            timer::rang(me, cpu);
            true
        }
        _ => false,
    };
    cpu.in_handler.store(false, Relaxed);
    mine
}

/// What the running block has in common, on a line of its own.
#[repr(align(64))]
struct Common {
    /// How calls reach a CPU that polls: a [`CallBy`].
    call_by: AtomicU32,
    /// A CPU that polls is not interrupted.
    elide: AtomicBool,
    /// A CPU that polls waits for an event.
    event: AtomicBool,
}

static COMMON: Common = Common {
    call_by: AtomicU32::new(0),
    elide: AtomicBool::new(false),
    event: AtomicBool::new(false),
};

impl Common {
    /// Sets it, before the block begins.
    fn set(&self, cell: &Cell) {
        let by = match cell.wake {
            Wake::Ipi => CallBy::Ipi,
            Wake::Elide => cell.call_by,
        };
        self.call_by.store(by as u32, Relaxed);
        self.elide.store(cell.wake.elides(), Relaxed);
        self.event.store(cell.wait.needs_sev(), Release);
    }
}

/// Whether calls reach a CPU that polls in this way.
#[inline(always)]
fn called_by(by: CallBy) -> bool {
    COMMON.call_by.load(Relaxed) == by as u32
}

/// How the executor of a CPU is woken.
#[inline(always)]
fn waker(index: usize) -> Waker {
    let target = percpu::all()[index];
    let elide = COMMON.elide.load(Relaxed);
    let event = COMMON.event.load(Relaxed);
    Waker::new(target, RESCHED, interrupts::RESCHED, elide, event)
}
