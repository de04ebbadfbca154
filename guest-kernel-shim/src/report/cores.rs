// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the clocks of the measuring CPUs, at the start and the end of a run. These clocks
//! show whether cores are alike, and which cores drift.
//!
//! Each CPU compares its own core with the counter while it is busy, like [`cycles`]: over four times 1000 readings, so
//! a clock is known to 1 in 4000, which is 250 ppm. The measurements around passes ([`watch`]) are short, and notice a
//! changed clock. The measurements here notice fewer of these changes, but are more exact. These measurements also show
//! the error that a value in cycles has at the end, because values are converted with the clock at the start.

use plan::Plan;

use crate::clock::cycles::{self, PerTick, Unknown};
use crate::clock::{self, watch};
use crate::percpu::{self, PerCpu};
use crate::planted;
use crate::workers::lead;

/// Returns the CPUs that may measure cells of `plan`, with their positions among the running
/// CPUs.
pub fn measuring_cpus(plan: &Plan) -> impl Iterator<Item = (usize, &'static PerCpu)> {
    let places = percpu::online().enumerate();
    places.filter(|&(place, _)| plan.may_measure(place))
}

/// Makes each measuring CPU measure its clock, if that can be measured or cycles are requested.
pub fn measure_at_start(plan: &Plan) {
    if !plan.cycles && !watch::can_measure() {
        return;
    }
    for (_, cpu) in measuring_cpus(plan) {
        let found = measure_clock(cpu, false);
        cpu.per_tick.call_once(|| found);
    }
}

/// Returns the clock of `cpu` at the start, in the form of [`to_hz`].
pub fn hz_at_start(cpu: &PerCpu) -> Option<u64> {
    to_hz(*cpu.per_tick.get()?)
}

/// Returns the clock of `cpu` now, if it was measured at the start.
pub fn hz_now(cpu: &'static PerCpu) -> Option<u64> {
    hz_at_start(cpu)?;
    to_hz(measure_clock(cpu, true))
}

/// Returns the clock of `cpu`, as that CPU measures it at the `end` or at the start.
fn measure_clock(cpu: &'static PerCpu, end: bool) -> PerTick {
    let mut found = Err(Unknown::NoTick);
    lead::run_on(cpu, &mut || found = cycles::per_tick());
    found.map(|ratio| planted::apparent_ratio(cpu.index, end, ratio))
}

/// Converts a ratio to the core's clock in Hz: 0 if a clock stands still or is not steady, `None` without a PMU.
fn to_hz(per_tick: PerTick) -> Option<u64> {
    match per_tick {
        Ok(ratio) => Some(ratio.convert(clock::frequency())),
        Err(Unknown::NoPmu) => None,
        Err(Unknown::NoTick | Unknown::Clocks(_)) => Some(0),
    }
}
