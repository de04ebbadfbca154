// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records: what leaves the guest. `docs/records.md` describes them.

mod block;
mod cell;
mod counts;
mod machine;
mod samples;
mod unit;

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use plan::{Cell, PASSES, Plan};
use wire::Line;

pub use cell::cell;
pub use machine::machine;

use crate::bench::{Entry, Work};
use crate::{clock, hypervisor, output};

/// Number of the next record.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Starts a record of `kind`.
fn record(kind: &str) -> Line {
    Line::new(NEXT.fetch_add(1, Relaxed), kind)
}

/// Writes a record. Fields are sized so that a line holds them; one that does
/// not is an error of this kernel, and a silent hole in the sequence would be
/// a riddle for whoever reads it.
fn send(line: Line) {
    match line.finish() {
        Some(text) => output::line(format_args!("{text}")),
        None => output::line(format_args!(
            "rouse: a record of more than {} bytes was not written",
            wire::MAX_LINE
        )),
    }
}

/// What this guest runs under.
fn under() -> &'static str {
    if hypervisor::present() {
        "rouse"
    } else {
        "none"
    }
}

/// The order of a pass.
pub fn order(pass: u32, forwards: bool, cells: usize) {
    let direction = if forwards { "forwards" } else { "backwards" };
    let line = record("order").field("pass", pass);
    send(line.field("direction", direction).field("cells", cells));
}

/// What CPUs measured beside a hostile one: their round trips, and the median, in
/// ticks.
pub fn hostile(class: &str, deliver: plan::Deliver, trips: u64, median: u64) {
    let line = record("hostile").field("class", class);
    let line = line.field("deliver", deliver);
    send(line.field("trips", trips).field("p50", unit::value(median)));
}

/// What is going to be measured, before it is.
pub fn plan(plan: &Plan, entries: &[Entry], work: &Work) {
    let skipped = entries.iter().filter(|entry| entry.skipped.is_some());
    let line = record("plan")
        .field("cells", entries.len())
        .field("skipped", skipped.count())
        .field("passes", PASSES)
        .field("iterations", plan.iterations);
    let budgets = entries.iter().map(|entry| entry.limits.budget);
    let line = line.field("guess_us", work.of_us);
    // It is the same for all.
    let ticks_of_ms = clock::frequency() / 1000;
    let ms = budgets.max().unwrap_or(0) / ticks_of_ms.max(1);
    send(line.field("cell_ms", ms));
}

/// How far the measurement is.
pub fn progress(work: &Work, cell: &Cell) {
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
    send(line.field("cell", name));
}

/// How far anything else is, and where.
pub fn progress_at(done: u64, of: u64, at: fmt::Arguments<'_>) {
    let line = record("progress").field("done", done).field("of", of);
    send(line.field("cell", at));
}

/// How often the soak has done something so far.
pub fn soak(name: &str, count: u64) {
    send(record("soak").field("name", name).field("count", count));
}

/// The last record.
pub fn end(cells: usize) {
    send(record("end").field("cells", cells));
}
