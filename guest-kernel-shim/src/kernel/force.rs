// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches forced polling per CPU while the CPUs run: a task of the first CPU operates the switches, like a user.
//!
//! The task turns each CPU's switch off, which makes the CPU leave its poll, and on again, so every
//! block includes both changes. A CPU whose switch was turned on notices this when it next idles. A
//! CPU without tasks would sleep for ever, so the task also wakes it, by an ordinary wake-up.

use core::sync::atomic::Ordering::{Acquire, Release};

use arch::insn;
use cpuidle::PollSwitch;
use plan::{Cell, CpuSet, IdlePollBy, Info};
use platform::MAX_CPUS;

use super::Cpu;
use super::stats::Stat;
use super::table::{cpu, waker};
use crate::clock;
use crate::percpu::{self, PerCpu};

/// The switches of [`IdlePollBy::Posted`].
pub static SWITCH: PollSwitch<MAX_CPUS> = PollSwitch::new();

/// Returns the way in which CPUs of `cell` are made to poll; `None` if none is.
pub fn forced_poll_way(cell: &Cell) -> Option<IdlePollBy> {
    let applies = Info::find("idle-poll").is_some_and(|info| info.applies(cell));
    (applies && !cell.idle_poll.is_empty()).then_some(cell.idle_poll_by)
}

/// Sets the switches for `cell` before its block begins, so that a CPU finds its own switch on when
/// it first idles.
pub fn set_switches(cell: &Cell) {
    let posted = forced_poll_way(cell) == Some(IdlePollBy::Posted);
    let on = match posted {
        true => cell.idle_poll,
        false => CpuSet::NONE,
    };
    for index in 0..percpu::all().len() {
        write_switch(index, if on.has(index) { "1\n" } else { "0\n" });
    }
}

/// Spawns the task that operates the switches, if `cell` forces any CPU to poll.
pub fn spawn(cell: &Cell, first: &Cpu) {
    let set = cell.idle_poll;
    match forced_poll_way(cell) {
        None => {}
        Some(IdlePollBy::Posted) => first.spawn(force_by_switch(set, first.index)),
        Some(IdlePollBy::Pointer) => first.spawn(force_by_pointer(set, first.index)),
    }
}

async fn force_by_switch(set: CpuSet, me: usize) {
    for cpu in other_cpus(set, me) {
        write_switch(cpu.index, "0\n");
        wait_until(|| !cpu.steps.polls.load(Acquire));
        write_switch(cpu.index, "1\n");
        wake_to_poll(cpu);
    }
}

async fn force_by_pointer(set: CpuSet, me: usize) {
    if set.has(me) {
        cpu(me).steps.force_poll(true);
    }
    for cpu in other_cpus(set, me) {
        wait_until(|| cpu.steps.are_set());
        cpu.steps.force_poll(true);
        wake_to_poll(cpu);
        cpu.steps.force_poll(false);
        wait_until(|| !cpu.steps.polls.load(Acquire));
        cpu.steps.force_poll(true);
        wake_to_poll(cpu);
    }
}

/// Returns the CPUs of `set` except `me`.
fn other_cpus(set: CpuSet, me: usize) -> impl Iterator<Item = &'static Cpu> {
    let all = set.iter(percpu::all().len());
    all.filter(move |&index| index != me).map(cpu)
}

/// Writes `text` to the switch of a CPU, and checks that the switch reads back as `text`.
fn write_switch(index: usize, text: &str) {
    let read = SWITCH
        .store(index, text.as_bytes())
        .map(|_| SWITCH.show(index));
    assert_eq!(read, Ok(text), "the switch to polling of CPU {index}");
}

/// Wakes `cpu`, and waits until it polls.
fn wake_to_poll(cpu: &Cpu) {
    let before = cpu.stats.get(Stat::Entered);
    waker(cpu.index).wake(PerCpu::this());
    wait_until(|| cpu.stats.get(Stat::Entered) != before);
}

/// Waits until `done` returns true, for something that another CPU does very soon.
fn wait_until(done: impl Fn() -> bool) {
    let came = clock::wait_for(|| {
        insn::yield_now();
        done()
    });
    assert!(came, "a CPU does not take its switch to polling");
}

impl Cpu {
    /// Records that the CPU begins (`on`) or stops forced polling.
    pub fn note_polling(&self, on: bool) {
        if on {
            self.stats.add(Stat::Entered);
        }
        self.steps.polls.store(on, Release);
    }
}
