// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clocks of the CPUs that measure, at the begin of a run and at its end: whether cores are alike, and which of
//! them drift.
//!
//! Each CPU compares its own core with the counter, busy, like [`cycles`]: over four times 1000 readings, so a clock is
//! known to 1 in 4000, which is 250 ppm. The measurements around passes ([`watch`]) are short, and see a core that
//! changes its clock. These see less of such changes, but more exactly: how wrong a value in cycles, which is converted
//! by the clock at the begin, is at the end.

use hist::Ratio;
use plan::{Fault, Plan};

use crate::clock::cycles::{self, PerTick, Unknown};
use crate::clock::{self, watch};
use crate::percpu::{self, PerCpu};
use crate::workers::lead;

/// The faster core of [`Fault::CoreDrifts`] makes so many cycles where it made so many less one.
const DRIFTS: u64 = 201;

/// The CPUs that may measure something of `plan`, with their places among those that run.
pub fn measuring(plan: &Plan) -> impl Iterator<Item = (usize, &'static PerCpu)> {
    let places = percpu::online().enumerate();
    places.filter(|&(place, _)| plan.may_measure(place))
}

/// Has each of them measure its clock, if that is possible, or cycles are asked for. `fault` may make cores seem
/// different.
pub fn begin(plan: &Plan, fault: Option<Fault>) {
    if !plan.cycles && !watch::tells() {
        return;
    }
    for (_, cpu) in measuring(plan) {
        let found = look(cpu, fault);
        cpu.per_tick.call_once(|| found);
    }
}

/// The clock of `cpu` at the begin, converted by [`hertz`].
pub fn at_begin(cpu: &PerCpu) -> Option<u64> {
    hertz(*cpu.per_tick.get()?)
}

/// The clock of `cpu` now, if it was measured at the begin. `fault` may make it seem to have drifted.
pub fn now(cpu: &'static PerCpu, fault: Option<Fault>) -> Option<u64> {
    at_begin(cpu)?;
    let found = look(cpu, fault);
    let drifts = fault == Some(Fault::CoreDrifts) && cpu.index == 1;
    hertz(if drifts {
        found.map(|ratio| times(ratio, DRIFTS, DRIFTS - 1))
    } else {
        found
    })
}

/// The clock of `cpu` as that CPU sees it.
fn look(cpu: &'static PerCpu, fault: Option<Fault>) -> PerTick {
    let mut found = Err(Unknown::NoTick);
    lead::on(cpu, &mut || found = cycles::per_tick());
    let other = fault == Some(Fault::CoresDiffer) && cpu.index != 0;
    match other {
        true => found.map(|ratio| times(ratio, 2, 1)),
        false => found,
    }
}

/// The ratio of a core that seems to be faster.
fn times(ratio: Ratio, times: u64, of: u64) -> Ratio {
    Ratio {
        wanted: ratio.wanted * times,
        read: ratio.read * of,
    }
}

/// Converts a ratio to the core's clock, Hz: 0 where a clock stands still or is not steady, `None` without a PMU.
fn hertz(per_tick: PerTick) -> Option<u64> {
    match per_tick {
        Ok(ratio) => Some(ratio.convert(clock::frequency())),
        Err(Unknown::NoPmu) => None,
        Err(Unknown::NoTick | Unknown::Clocks(_)) => Some(0),
    }
}
