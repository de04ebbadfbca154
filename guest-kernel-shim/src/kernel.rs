// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a small kernel, for measurements in which a CPU does more between two wake-ups than answer
//! the first of them.
//!
//! Every CPU has an executor of `async` tasks ([`executor`], [`mod@task`]). A task stays on its CPU. To wake a task of
//! another CPU, a CPU puts it into that CPU's inbox, a lock-free list, and sets RESCHED in its request word; the word
//! decides whether an interrupt is sent as well ([`wait::request`]), as for every wake-up here. Tasks sleep by the
//! CPU's virtual timer ([`timer`]) and wait for each other in [`channel`]s; [`calls`] run a function on another CPU.
//!
//! A CPU without a ready task idles in one of the ways of [`crate::idle`]; workload `pingpong`
//! measures their loops without the kernel. Waits called `governor:<name>` choose among the idle
//! states of crate `cpuidle` ([`crate::idle`]).
//!
//! Interrupt handlers of this kernel wake tasks only through the inbox, and touch nothing else that the executor uses,
//! so the executor runs with interrupts enabled, except during the pass of its scheduler.

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

/// Bytes of the pool that [`create_kernel`] takes for each CPU; the page is for rounding.
pub const NEEDS: u64 =
    (TASKS * size_of::<Task>()) as u64 + memory::SIZE as u64 + size_of::<Cpu>() as u64 + PAGE;

/// Bytes of the pool that [`create_kernel`] takes for each pair of CPUs.
pub const NEEDS_PER_PAIR: u64 = size_of::<Call>() as u64;

/// Allocates the state of the kernel for `cpus` CPUs.
pub fn create_kernel(pool: &mut Pool, cpus: usize) {
    TABLE.call_once(|| {
        let task = |n| Task::new(n as u32, n / TASKS);
        pool.fill((0..cpus * TASKS).map(task))
    });
    // This memory is not zeroed, because it makes up most of a CPU's memory, and a future is
    // written before it is read.
    let futures = pool.reserve((cpus * memory::SIZE) as u64) as usize;
    let calls = Call::place_calls(pool, cpus * cpus);
    let calls = calls.chunks_exact(cpus).enumerate();
    let all: &'static [Cpu] = pool.fill(calls.map(|(index, outgoing)| {
        // SAFETY: this is fresh memory, and each CPU has its own part of it.
        let memory = unsafe { Memory::new(futures + index * memory::SIZE) };
        Cpu::new(index, memory, outgoing)
    }));
    CPUS.call_once(|| pool.fill(all.iter()));
}

/// Handles interrupt `intid` if it is this kernel's; otherwise returns `false`.
pub fn handle_interrupt(me: &PerCpu, intid: u32) -> bool {
    let Some(cpus) = CPUS.get() else { return false };
    let cpu = cpus[me.index];
    if !cpu.rung.is_on() {
        return false;
    }
    cpu.in_handler.store(true, Relaxed);
    let mine = match intid {
        interrupts::FUNCTION => {
            calls::run_calls(cpu, Stat::Interrupted);
            true
        }
        _ if intid == platform().timer.virt => {
            timer::handle_interrupt(me, cpu);
            true
        }
        _ => false,
    };
    cpu.in_handler.store(false, Relaxed);
    mine
}
