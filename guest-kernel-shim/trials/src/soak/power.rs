// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes CPUs turn themselves off, and other CPUs turn them on again.
//!
//! Before a CPU turns itself off, it asks a CPU with a lower number to turn it on again. So a CPU
//! that is off depends on a CPU with a lower number, and ultimately on the first CPU, which is never
//! off.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use platform::MAX_CPUS;

use super::operation::timer;
use super::state::wait_for;
use super::tokens;
use super::violation::{Kind, stop_machine};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{hypervisor, smp, workers};
use sched::random::Random;

/// The value of PSCI's AFFINITY_INFO for a CPU that is off (DEN0022F.b, 5.1.5).
const OFF: i64 = 1;

/// The CPUs that each CPU has to turn on, one bit each.
static TO_TURN_ON: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// Number of times that each CPU has begun to run: it may be off again before any CPU checks.
static ARRIVALS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// Turns this CPU off, until another CPU turns it on: this CPU then restarts its task.
pub fn turn_off(me: &PerCpu, random: &mut Random) -> ! {
    let helper = percpu::all()[random.below(me.index as u64) as usize];
    // A timer's state is UNKNOWN when power is back (DDI 0487K.a, D23.11.25).
    timer::stop(me, timer::VIRTUAL);
    timer::stop(me, timer::PHYSICAL);
    me.set_offline();
    workers::set_rerun(me);
    TO_TURN_ON[helper.index].fetch_or(1 << me.index, AcqRel);
    tokens::wake_cpu(me, helper);
    hypervisor::cpu_off();
    stop_machine(Kind::Answer, format_args!("CPU_OFF came back"))
}

/// Turns on the CPUs that have asked this CPU to do so.
pub fn serve_turn_on(me: &PerCpu) {
    let mut asked = TO_TURN_ON[me.index].swap(0, AcqRel);
    while asked != 0 {
        turn_on(percpu::all()[asked.trailing_zeros() as usize]);
        asked &= asked - 1;
    }
}

/// Records that this CPU runs.
pub fn note_arrival(me: &PerCpu) {
    ARRIVALS[me.index].fetch_add(1, AcqRel);
}

fn turn_on(cpu: &'static PerCpu) {
    let arrivals = || ARRIVALS[cpu.index].load(Acquire);
    let before = arrivals();
    let off = wait_for(|| hypervisor::affinity_info(cpu.mpidr) == OFF);
    let status = smp::turn_cpu_on(cpu);
    if !off || status != 0 || !wait_for(|| arrivals() != before) {
        stop_machine(
            Kind::Answer,
            format_args!(
                "CPU {:#x}: off {off}, CPU_ON answers {status}, arrived {} times",
                cpu.mpidr,
                arrivals()
            ),
        );
    }
}
