// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clocks of the CPUs that measure, at the begin of a run and at its end: whether cores are alike, and which of
//! them drift.
//!
//! Each CPU compares its own core with the counter, busy, like [`cycles`]: over four times 1000 readings, so a clock is
//! known to 1 in 4000, which is 250 ppm. The measurements around passes ([`watch`]) are short, and see a core that
//! changes its clock. These see less of such changes, but more exactly: how wrong a value in cycles, which is converted
//! by the clock at the begin, is at the end.

use plan::Plan;

use crate::clock::cycles::{self, PerTick, Unknown};
use crate::clock::{self, watch};
use crate::percpu::{self, PerCpu};
use crate::planted;
use crate::workers::lead;

/// The CPUs that may measure something of `plan`, with their places among those that run.
pub fn measuring(plan: &Plan) -> impl Iterator<Item = (usize, &'static PerCpu)> {
    let places = percpu::online().enumerate();
    places.filter(|&(place, _)| plan.may_measure(place))
}

/// Each of them looks at its clock, if that tells, or cycles are asked for.
pub fn begin(plan: &Plan) {
    if !plan.cycles && !watch::tells() {
        return;
    }
    for (_, cpu) in measuring(plan) {
        let found = look(cpu, false);
        cpu.per_tick.call_once(|| found);
    }
}

/// The clock of `cpu` at the begin, converted by [`hertz`].
pub fn at_begin(cpu: &PerCpu) -> Option<u64> {
    hertz(*cpu.per_tick.get()?)
}

/// How fast it is now, if it has looked at the begin.
pub fn now(cpu: &'static PerCpu) -> Option<u64> {
    at_begin(cpu)?;
    hertz(look(cpu, true))
}

/// The clock of `cpu` as that CPU sees it, at the `end` or at the begin.
fn look(cpu: &'static PerCpu, end: bool) -> PerTick {
    let mut found = Err(Unknown::NoTick);
    lead::on(cpu, &mut || found = cycles::per_tick());
    found.map(|ratio| planted::core(cpu.index, end, ratio))
}

/// Converts a ratio to the core's clock, Hz: 0 where a clock stands still or is not steady, `None` without a PMU.
fn hertz(per_tick: PerTick) -> Option<u64> {
    match per_tick {
        Ok(ratio) => Some(ratio.convert(clock::frequency())),
        Err(Unknown::NoPmu) => None,
        Err(Unknown::NoTick | Unknown::Clocks(_)) => Some(0),
    }
}
