// SPDX-License-Identifier: MIT OR Apache-2.0
//! `idle`: a task per CPU that has only a little to do every `gap-us`, a machine on which polling is a waste, which a
//! reviewer wants to see as well. A sample is the time of such a period in which the CPU was not halted: the closest
//! measure of the energy cost of idling without a meter.

use core::hint::black_box;

use plan::Workload;

use crate::clock;
use crate::kernel::Cpu;
use crate::kernel::timer::sleep_until;
use crate::percpu::PerCpu;
use crate::tally::Event;
use crate::workload::samples::{record, rounds};

/// Rounds of a loop that stand for housekeeping.
const WORK: u32 = 1000;

/// Begins the task of this CPU.
pub fn spawn(count: u32, period: u64, cpu: &Cpu) {
    cpu.spawn(housekeeping(count, period));
}

async fn housekeeping(count: u32, period: u64) {
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
