// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block of a cell: what it is, and why it was not run.

use core::fmt::Write;
use core::sync::atomic::Ordering::Relaxed;

use arrayvec::ArrayString;
use plan::{Cell, DIMENSIONS, Info, Place, Plan, SkipReason};
use wire::Line;

use super::counts::{counts, kernel, residency};
use super::samples::measured;
use super::{NEXT, record, send, under};
use crate::bench::Entry;
use crate::{clock, crew, percpu, probe};

/// Everything of a cell, as one block.
pub fn cell(id: usize, entry: &Entry, plan: &Plan) {
    let first = NEXT.load(Relaxed);
    describe(id, &entry.cell, plan.iterations);
    match (entry.skipped, &entry.samples) {
        (Some(reason), _) => skipped(id, reason),
        (None, Some(samples)) => {
            measured(id, samples, plan.compact);
            counts(id, entry, plan.compact);
            residency(id, &entry.stamped);
            if entry.cell.workload.has_tasks() {
                kernel(id, &entry.kernel);
            }
        }
        (None, None) => {}
    }
    let records = NEXT.load(Relaxed) - first + 1;
    let line = record("done").field("id", id).field("under", under());
    send(line.field("records", records));
}

fn describe(id: usize, cell: &Cell, iterations: u32) {
    let line = record("cell").field("id", id).field("under", under());
    send(told(line, cell, Place::Always));
    system(id, cell);
    // The rest has a line of its own: with long numbers one would not do.
    let line = record("more")
        .field("id", id)
        .field("cpus", percpu::online().count())
        .field("iterations", iterations);
    let line = told(line, cell, Place::Unusual);
    let line = match crew::stream(cell) {
        None => line,
        Some(stream) => {
            let made = clock::nanoseconds(stream.period());
            line.field("event_stream_made_ns", made)
        }
    };
    let mut missing = ArrayString::<80>::new();
    for name in cell.depends_on() {
        if probe::is_not_modelled(name) {
            let separator = if missing.is_empty() { "" } else { "," };
            // The names of all that a cell can depend on fit.
            let _ = write!(missing, "{separator}{name}");
        }
    }
    send(if missing.is_empty() {
        line
    } else {
        line.field("not_modelled", missing)
    });
}

/// Adds the dimensions that records have in this place.
fn told(line: Line, cell: &Cell, place: Place) -> Line {
    let here = DIMENSIONS.iter().filter(|info| info.place == place);
    let told = here.filter(|info| info.is_told(cell));
    told.fold(line, |line, info| {
        line.field(&name("", info), info.text(cell))
    })
}

/// The name of a dimension in records: behind `prefix`, with `_` for `-` if it is a field of its own.
fn name(prefix: &str, info: &Info) -> ArrayString<40> {
    let mut name = ArrayString::new();
    let written = write!(name, "{prefix}").and_then(|()| {
        let mut letters = info.key.chars();
        letters.try_for_each(|letter| match (prefix, letter) {
            ("", '-') => name.write_char('_'),
            _ => name.write_char(letter),
        })
    });
    written.expect("the names of dimensions are short");
    name
}

/// What belongs to the executor, in lines of its own.
fn system(id: usize, cell: &Cell) {
    let mut line = None;
    for info in cell.system() {
        // The longest of these fields, a set of CPUs aside, has less than 40 bytes.
        let fresh = || record("more").field("id", id);
        let begun: Line = match line.take() {
            Some(line) if Line::room(&line) > 80 => line,
            Some(line) => {
                send(line);
                fresh()
            }
            None => fresh(),
        };
        line = Some(begun.field(&name("sys.", info), info.text(cell)));
    }
    line.into_iter().for_each(send);
}

fn skipped(id: usize, reason: SkipReason) {
    send(record("skipped").field("id", id).field("why", reason));
}
