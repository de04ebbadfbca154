// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `idle`: one task per CPU has only a little to do every `gap-us`. On such a machine, polling is a waste, which
//! this workload shows. A sample is the part of such a period in which the CPU was not halted. Without a power meter,
//! this is the closest measure of the energy cost of idling.

use core::hint::black_box;

use plan::Workload;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::timer::sleep_until;
use crate::percpu::PerCpu;
use crate::tally::Event;
use crate::workload::samples::{record, rounds};

/// Number of rounds of a loop that represents housekeeping.
const WORK: u32 = 1000;

/// Spawns the task of this CPU.
pub fn spawn(count: u32, period: u64, cpu: &Cpu) {
    cpu.spawn(do_housekeeping(count, period));
}

async fn do_housekeeping(count: u32, period: u64) {
    let me = PerCpu::this();
    let mut deadline = clock::now();
    for recorded in rounds(Workload::Idle, count) {
        let start = clock::now();
        let halted = me.tally.get(Event::HaltTicks);
        for n in 0..WORK {
            black_box(n);
        }
        deadline += period;
        sleep_until(deadline).await;
        let halted = me.tally.get(Event::HaltTicks) - halted;
        let awake = (clock::now() - start).saturating_sub(halted);
        if recorded {
            record(awake);
        }
    }
}
