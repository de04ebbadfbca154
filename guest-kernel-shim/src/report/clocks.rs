// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the clocks of the CPUs that measure: one record for each CPU at the start, which a run
//! has even if it is cut short, and one at the end.

use plan::Plan;
use wire::Line;

use super::cores;
use super::record::{record, send_line};
use super::unit::Values;
use crate::percpu::PerCpu;

/// Reports the clocks at the start, and the clocks that convert values to cycles, if any.
pub fn report_at_start(plan: &Plan) {
    for (place, cpu) in cores::measuring_cpus(plan) {
        let Some(hertz) = cores::hz_at_start(cpu) else {
            continue;
        };
        let line = clock_line(place, cpu).field("begin_hz", hertz);
        send_line(match Values::of_cpu(cpu).core_hz() {
            Some(hertz) => line.field("cycles_hz", hertz),
            None => line,
        });
    }
}

/// Reports the clocks at the end.
pub fn report_at_end(plan: &Plan) {
    for (place, cpu) in cores::measuring_cpus(plan) {
        if let Some(hertz) = cores::hz_now(cpu) {
            send_line(clock_line(place, cpu).field("end_hz", hertz));
        }
    }
}

fn clock_line(place: usize, cpu: &PerCpu) -> Line {
    let line = record("core-clock").field("cpu", place);
    line.field("affinity", format_args!("{:#x}", cpu.mpidr))
}
