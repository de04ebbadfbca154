// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the records of trials. `docs/records.md` describes them.

use core::fmt;

use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::report::record::{record, send_line};
use guest_kernel_shim::report::unit::Values;

/// Writes the results of the CPUs that measure next to a hostile CPU: round trips, and their median in ticks.
pub fn report_hostile(class: &str, deliver: plan::Deliver, trips: u64, median: u64) {
    let p50 = Values::of_cpu(PerCpu::this()).convert(median);
    let line = record("hostile").field("class", class);
    let line = line.field("deliver", deliver);
    send_line(line.field("trips", trips).field("p50", p50));
}

/// Reports the progress of a trial that does not measure, and where the trial is.
pub fn report_progress(done: u64, of: u64, at: fmt::Arguments<'_>) {
    let line = record("progress").field("done", done).field("of", of);
    send_line(line.field("cell", at));
}

/// Reports how often the soak has performed an operation so far.
pub fn report_soak(name: &str, count: u64) {
    send_line(record("soak").field("name", name).field("count", count));
}
