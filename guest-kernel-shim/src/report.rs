// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records: what leaves the guest. `docs/records.md` describes them.

mod cell;
mod counts;
mod machine;
mod samples;
mod unit;

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use plan::Cell;
use wire::Line;

pub use cell::cell;
pub use machine::machine;

use crate::{hypervisor, output};

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

/// How far the measurement is.
pub fn progress(done: usize, of: usize, cell: &Cell) {
    let Cell {
        workload,
        wait,
        trap,
        deliver,
        wake,
        ..
    } = cell;
    let name = format_args!("{workload} {wait} {trap} {deliver} {wake}");
    progress_at(done as u64, of as u64, name);
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
