// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the workloads, which run over and over: one module per workload. A workload has a part
//! for the CPU that measures and one for each CPU that takes part.

pub mod arrivals;
pub mod call;
mod crowd;
pub mod frames;
pub mod idle;
pub mod io;
pub mod ipi;
pub mod ipistorm;
pub mod messaging;
pub mod notify;
pub mod overshoot;
pub mod pingpong;
pub mod pipe;
pub mod preparation;
pub mod samples;
mod shared_state;
pub mod stages;
pub mod stream;
pub mod timer;
pub mod times;

use plan::{Cell, Workload};

use self::shared_state::CHANNELS;
use crate::kernel::Cpu;
use crate::kernel::channel::Channel;
use crate::{clock, percpu};

/// Prepares the state that tasks of a workload share.
pub fn prepare_workload() {
    CHANNELS.iter().for_each(Channel::clear);
}

/// Spawns the tasks of `cell` that belong to `cpu`, which is the running CPU.
pub fn spawn_tasks(cell: &Cell, count: u32, cpu: &'static Cpu) {
    let cpus = percpu::online().count();
    let groups = cell.groups;
    let gap = clock::us_to_ticks(cell.gap_us);
    let listed = cell.cpulist.has(cpu.index);
    if cell.workload == Workload::Ipistorm && cell.crowd.has(cpu.index) {
        crowd::spawn(cpu);
    }
    match cell.workload {
        Workload::Ipistorm | Workload::Timer | Workload::Idle if !listed => {}
        Workload::Messaging => messaging::spawn(groups, count, cpu, cpus),
        Workload::Pipe => pipe::spawn(groups, count, gap, cpu, cpus),
        Workload::Notify if cell.is_open() => arrivals::spawn(cell, count, cpu, cpus),
        Workload::Notify => notify::spawn(cell, count, gap, cpu, cpus),
        Workload::Ipistorm => ipistorm::spawn(cell, count, gap, cpu, cpus),
        Workload::Io => io::spawn(cell, count, gap, cpu),
        Workload::Timer => timer::spawn(count, gap, cpu),
        Workload::Idle => idle::spawn(count, gap, cpu),
        Workload::Frames => frames::spawn(count, gap, cpu, cpus),
        Workload::Ipi | Workload::Pingpong | Workload::Stream | Workload::Overshoot => {}
        // These are workloads of another guest, whose cells are skipped.
        Workload::LinuxPipe
        | Workload::LinuxFutex
        | Workload::LinuxEventfd
        | Workload::LinuxMembarrier
        | Workload::LinuxSeccompNotify
        | Workload::LinuxMessaging
        | Workload::LinuxTimer
        | Workload::LinuxIdle
        | Workload::LinuxCall
        | Workload::LinuxExec => {}
    }
}
