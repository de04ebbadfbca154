// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the clocks of the CPUs that measure: one record for each CPU at the start, so that a run
//! that is cut short has these, and one at the end.

use plan::Plan;
use wire::Line;

use super::cores;
use super::record::{record, send};
use super::unit::Values;
use crate::percpu::PerCpu;

/// Reports the clocks at the start, and those that convert values to cycles, if any.
pub fn begin(plan: &Plan) {
    for (place, cpu) in cores::measuring(plan) {
        let Some(hertz) = cores::at_begin(cpu) else {
            continue;
        };
        let line = line_of(place, cpu).field("begin_hz", hertz);
        send(match Values::of(cpu).core_hz() {
            Some(hertz) => line.field("cycles_hz", hertz),
            None => line,
        });
    }
}

/// Reports the clocks at the end.
pub fn end(plan: &Plan) {
    for (place, cpu) in cores::measuring(plan) {
        if let Some(hertz) = cores::now(cpu) {
            send(line_of(place, cpu).field("end_hz", hertz));
        }
    }
}

fn line_of(place: usize, cpu: &PerCpu) -> Line {
    let line = record("core-clock").field("cpu", place);
    line.field("affinity", format_args!("{:#x}", cpu.mpidr))
}
