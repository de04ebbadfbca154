// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares and runs a block of a cell on every CPU's executor, and collects the counts.
//!
//! The first CPU prepares the shared state and only then posts the job ([`crate::workers`]). Each CPU spawns
//! its tasks before it reports that it is ready. No CPU leaves before the last task on any CPU has ended.
//!
//! A CPU's recent utilisation carries over from one block of a cell to the next, as in a kernel: a kernel never
//! resets it, and blocks are short compared with its half-life. A CPU's work between blocks does not belong to
//! the cell and is not counted. In each block, a governor starts without history, and counts start from zero.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use cpuidle::Device;
use plan::Cell;
use wait::request::REQUESTS;

use crate::entry::Busy;
use crate::kernel::cpu::Usage;
use crate::kernel::executor::Executor;
use crate::kernel::stats::Totals;
use crate::kernel::table::{COMMON, LIVE, OVERLOADED, cpu, online};
use crate::kernel::{force, time};
use crate::machine::platform;
use crate::percpu::PerCpu;
use crate::setting::Setting;
use crate::{clock, idle, interrupts, knobs, workload};

/// A part of a cell's pass.
#[derive(Clone, Copy)]
pub struct Block {
    /// The cell that the block belongs to.
    pub cell: Cell,
    /// The number of samples that the block takes.
    pub count: u32,
}

impl Block {
    /// Prepares the state that all CPUs share, before any CPU begins. `busy` is the CPUs'
    /// utilisation at the end of the cell's previous block.
    pub fn prepare_shared_state(&self, busy: &Busy) {
        for (cpu, load) in online().zip(busy) {
            *cpu.busy.lock() = *load;
        }
        assert!(LIVE.load(Acquire) == 0, "tasks of an earlier block live");
        COMMON.set_for_cell(&self.cell);
        force::set_switches(&self.cell);
        OVERLOADED.clear();
        workload::prepare_workload();
    }

    /// Does this CPU's part of the preparation.
    #[inline(never)]
    pub fn begin_on_cpu(&self) {
        let me = PerCpu::this();
        let cpu = cpu(me.index);
        // SAFETY: no task is alive, so every future has been dropped.
        cpu.memory.with(|memory| unsafe { memory.clear() });
        let load = *cpu.busy.lock();
        let usage = Usage::from_load(load, time::ticks_to_ns(clock::now()));
        cpu.load.store(load.average(), Relaxed);
        cpu.usage.with(|place| *place = usage);
        cpu.device.with(|device| *device = None);
        // Clears the counts, steps and requests that an earlier block left.
        Totals::take_from(&cpu.stats, None);
        cpu.steps.clear();
        me.request.take(REQUESTS);
        switch_interrupts(me, true);
        cpu.rung.set_on(true);
        if me.index == 0 {
            force::spawn(&self.cell, cpu);
        }
        workload::spawn_tasks(&self.cell, self.count, cpu);
    }

    /// Runs the block, and leaves its counts for [`Self::totals`].
    #[inline(never)]
    pub fn run(&self) {
        let me = PerCpu::this();
        let cpu = cpu(me.index);
        let start = clock::now();
        idle::run_body(&idle_setting(&self.cell), &mut Executor(cpu));
        let span = clock::now() - start;
        cpu.rung.set_on(false);
        switch_interrupts(me, false);
        me.request.take(REQUESTS);
        let idle = |device: &mut Option<Device>| Totals::take_from(&cpu.stats, device.as_ref());
        let totals = cpu.device.with(idle);
        *cpu.busy.lock() = cpu.usage.with(|usage| usage.load);
        let span = if me.index == 0 { span } else { 0 };
        *cpu.totals.lock() = Totals { span, ..totals };
    }

    /// Copies each CPU's utilisation at the end of the block to `busy`.
    pub fn save_utilisation(busy: &mut Busy) {
        for (cpu, load) in online().zip(busy) {
            *load = *cpu.busy.lock();
        }
    }

    /// Sums the counts of all CPUs.
    pub fn totals() -> Totals {
        let mut sum = Totals::ZERO;
        for cpu in online() {
            sum.add(&cpu.totals.lock());
        }
        sum
    }
}

/// Returns how the executor idles in `cell`.
fn idle_setting(cell: &Cell) -> Setting {
    Setting {
        wanted: REQUESTS,
        timed: true,
        forced: force::forced_poll_way(cell),
        ..knobs::wait_mode(cell)
    }
}

/// Enables or disables the interrupts that only [`crate::kernel`] uses.
fn switch_interrupts(me: &PerCpu, on: bool) {
    let bits = 1 << interrupts::FUNCTION | 1 << platform().timer.virt;
    let redistributor = interrupts::redistributor(me);
    if on {
        redistributor.enable_all(bits);
    } else {
        redistributor.disable_all(bits);
    }
}
