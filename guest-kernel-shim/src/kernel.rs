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
//! ([`crate::idle`]).
//!
//! Interrupt handlers of this kernel wake tasks only through the inbox, and
//! touch nothing else that the executor uses, so the executor runs with
//! interrupts enabled, but for the pass of its scheduler.

pub mod calls;
pub mod channel;
pub mod clockwork;
pub mod cpu;
pub mod device;
pub mod executor;
pub mod force;
pub mod handoff;
pub mod local;
pub mod memory;
pub mod stats;
pub mod steps;
pub mod table;
pub mod task;
pub mod time;
pub mod timer;

use core::sync::atomic::Ordering::Relaxed;

use pages::{PAGE, Pool};

pub use self::cpu::Cpu;
use self::cpu::TASKS;
use self::handoff::Call;
use self::memory::Memory;
use self::stats::Stat;
use self::table::{CPUS, TABLE};
use self::task::Task;
use crate::interrupts;
use crate::machine::platform;
use crate::percpu::PerCpu;

/// Bytes of the pool that [`create`] takes for each CPU; the page is for what is rounded up.
pub const NEEDS: u64 =
    (TASKS * size_of::<Task>()) as u64 + memory::SIZE as u64 + size_of::<Cpu>() as u64 + PAGE;

/// And for each pair of CPUs.
pub const NEEDS_PER_PAIR: u64 = size_of::<Call>() as u64;

/// Allocates what every CPU has.
pub fn create(pool: &mut Pool, cpus: usize) {
    TABLE.call_once(|| {
        let task = |n| Task::new(n as u32, n / TASKS);
        pool.fill((0..cpus * TASKS).map(task))
    });
    // Not zeroed: these are most of what a CPU has, and a future is written before it is read.
    let futures = pool.reserve((cpus * memory::SIZE) as u64) as usize;
    let calls = Call::place(pool, cpus * cpus);
    let calls = calls.chunks_exact(cpus).enumerate();
    let all: &'static [Cpu] = pool.fill(calls.map(|(index, outgoing)| {
        // SAFETY: fresh memory, of which each CPU has a part of its own.
        let memory = unsafe { Memory::new(futures + index * memory::SIZE) };
        Cpu::new(index, memory, outgoing)
    }));
    CPUS.call_once(|| pool.fill(all.iter()));
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
        _ if intid == platform().timer.virt => {
            timer::rang(me, cpu);
            true
        }
        _ => false,
    };
    cpu.in_handler.store(false, Relaxed);
    mine
}
