// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes records, which are the output of the guest. `docs/records.md` describes them.

mod block;
mod cell;
pub mod clocks;
mod cores;
mod counts;
mod machine;
pub mod record;
mod samples;
pub mod unit;

use abi::Info;
use plan::{Cell, PASSES, Plan};

pub use cell::report_cell;
pub use machine::report_machine;

use self::record::{record, send_line};
use crate::entry::{Entry, Work};
use crate::{clock, hypervisor};

/// Reports the order of cells in a pass.
pub fn report_order(pass: u32, forwards: bool, cells: usize) {
    let direction = if forwards { "forwards" } else { "backwards" };
    let line = record("order").field("pass", pass);
    send_line(line.field("direction", direction).field("cells", cells));
}

/// Reports the plan before measuring.
pub fn report_plan(plan: &Plan, entries: &[Entry], work: &Work) {
    let skipped = entries.iter().filter(|entry| entry.skipped.is_some());
    let line = record("plan")
        .field("cells", entries.len())
        .field("skipped", skipped.count())
        .field("passes", PASSES)
        .field("iterations", plan.iterations);
    let budgets = entries.iter().map(|entry| entry.limits.budget);
    let line = line.field("guess_us", work.of_us);
    // All cells have the same budget.
    let ticks_of_ms = clock::frequency() / 1000;
    let ms = budgets.max().unwrap_or(0) / ticks_of_ms.max(1);
    send_line(line.field("cell_ms", ms));
}

/// Reports the progress of the measurement.
pub fn report_progress(work: &Work, cell: &Cell) {
    let Cell {
        workload,
        wait,
        trap,
        deliver,
        wake,
        ..
    } = cell;
    let name = format_args!("{workload} {wait} {trap} {deliver} {wake}");
    let line = record("progress").field("done", work.done);
    let line = line.field("of", work.of).field("done_us", work.done_us);
    send_line(line.field("cell", name));
}

/// Reports the SErrors that EL2 has taken and survived, if there were any.
fn report_serrors() {
    if !hypervisor::exists() {
        return;
    }
    let counts = [
        ("left", hypervisor::info(Info::SerrorsLeft)),
        ("corrected", hypervisor::info(Info::SerrorsCorrected)),
        ("restartable", hypervisor::info(Info::SerrorsRestartable)),
    ];
    if counts.iter().any(|(_, count)| *count != 0) {
        let line = record("serrors");
        let line = counts
            .iter()
            .fold(line, |line, (name, count)| line.field(name, count));
        send_line(line);
    }
}

/// Writes the last records.
pub fn report_end(cells: usize) {
    report_serrors();
    send_line(record("end").field("cells", cells));
}
