// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polling by CPU, switched while the CPUs run: a task of the first CPU.

use arch::insn;
use plan::CpuSet;

use super::Cpu;
use super::stats::Stat;
use super::table::{cpu, waker};
use crate::clock;
use crate::percpu::{self, PerCpu};

/// Begins the task that makes the CPUs of `set` poll.
///
/// Each is switched on, off again, which it has to notice by leaving the poll,
/// and on: so every block has gone through both. A CPU that sleeps is woken to
/// learn of it, as one without tasks would sleep on for ever.
pub fn spawn(set: CpuSet, first: &Cpu) {
    if !set.is_empty() {
        first.spawn(switch(set, first.index));
    }
}

async fn switch(set: CpuSet, me: usize) {
    for cpu in set.iter(percpu::all().len()).map(cpu) {
        wait(|| cpu.steps.are_set());
        cpu.steps.force(true);
        if cpu.index != me {
            enter(cpu);
            let before = cpu.stats.get(Stat::Forced);
            cpu.steps.force(false);
            wait(|| cpu.stats.get(Stat::Forced) != before);
            cpu.steps.force(true);
            enter(cpu);
        }
    }
}

/// Wakes `cpu`, and waits until it polls.
fn enter(cpu: &Cpu) {
    let before = cpu.stats.get(Stat::Entered);
    waker(cpu.index).wake(PerCpu::this());
    wait(|| cpu.stats.get(Stat::Entered) != before);
}

/// Waits for something that another CPU does very soon.
fn wait(done: impl Fn() -> bool) {
    let came = clock::wait_for(|| {
        insn::yield_now();
        done()
    });
    assert!(came, "a CPU does not take its switch to polling");
}
