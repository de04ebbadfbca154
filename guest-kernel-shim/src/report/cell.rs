// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block of a cell: what it is, and why it was not run.

use core::fmt::Write;

use arrayvec::ArrayString;
use plan::{Cell, Hint, HostPoll, PASSES, Plan};
use wire::Line;

use super::block::Block;
use super::counts::{counts, kernel, residency};
use super::samples::{Detail, measured};
use super::{send, under};
use crate::bench::{Entry, Work};
use crate::{clock, crew, percpu, probe};

/// Everything of a cell, as one block: what it has so far, or in the end.
pub fn cell(id: usize, entry: &Entry, plan: &Plan, work: &Work) {
    let part = entry.samples.is_some() && entry.pace.ended.is_none();
    let detail = match (plan.compact, part) {
        (true, _) => Detail::Statistics,
        (false, true) => Detail::Total,
        (false, false) => Detail::All,
    };
    let block = Block::begin(id, part);
    describe(&block, &entry.cell, plan.iterations);
    match (entry.obstacle, &entry.samples) {
        (Some(obstacle), _) => send(block.record("skipped").field("why", obstacle)),
        (None, Some(samples)) => {
            measured(&block, samples, detail);
            counts(&block, entry, plan.compact || part);
            residency(&block, &entry.stamped);
            if entry.cell.workload.has_tasks() {
                kernel(&block, &entry.kernel);
            }
        }
        (None, None) => {}
    }
    block.end(|line| {
        let line = line.field("under", under());
        let line = line.field("at", work.done).field("at_us", work.done_us);
        pace(line, entry)
    });
}

/// How many passes a cell has, of how many, and why it has ended.
fn pace(line: Line, entry: &Entry) -> Line {
    if entry.samples.is_none() {
        return line;
    }
    let line = line.field("passes", entry.pace.passes);
    let line = line.field("passes_planned", PASSES);
    match entry.pace.ended {
        None => line,
        Some(end) => line.field("ended", end),
    }
}

fn describe(block: &Block, cell: &Cell, iterations: u32) {
    let line = block
        .record("cell")
        .field("under", under())
        .field("workload", cell.workload)
        .field("shape", cell.shape)
        .field("wait", cell.wait)
        .field("trap", cell.trap)
        .field("deliver", cell.deliver)
        .field("wake", cell.wake)
        .field("poll_limit_us", cell.poll_limit_us)
        .field("host_poll_us", cell.host_poll_us)
        .field("event_stream_us", cell.event_stream_us)
        .field("gap_us", cell.gap_us);
    send(line);
    system(block, cell);
    // The rest has a line of its own: with long numbers one would not do.
    let line = block
        .record("more")
        .field("cpus", percpu::online().count())
        .field("iterations", iterations);
    let line = match cell.host_poll {
        HostPoll::Fixed => line,
        HostPoll::Adaptive => line.field("host_poll", cell.host_poll),
    };
    let line = match cell.hint {
        Hint::Silent => line,
        Hint::Tell => line.field("hint", cell.hint),
    };
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

/// What belongs to the executor, in lines of its own.
fn system(block: &Block, cell: &Cell) {
    let mut line = None;
    let done = cell.system.each(|key, value| {
        // The longest of these fields, a set of CPUs aside, has less than 40 bytes.
        let fresh = || block.record("more");
        let begun: Line = match line.take() {
            Some(line) if Line::room(&line) > 80 => line,
            Some(line) => {
                send(line);
                fresh()
            }
            None => fresh(),
        };
        let mut name = ArrayString::<40>::new();
        write!(name, "sys.{key}")?;
        line = Some(begun.field(&name, value));
        Ok::<(), core::fmt::Error>(())
    });
    done.expect("the names of dimensions are short");
    line.into_iter().for_each(send);
}
