// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the block of a cell: its description, and its results or why it was not run.

use core::fmt::Write;

use arrayvec::ArrayString;
use plan::{Cell, DIMENSIONS, Info, Noise, PASSES, Place, Plan};
use wire::Line;

use super::block::Block;
use super::counts::{write_counts, write_kernel, write_load, write_noise, write_parts};
use super::record::{hypervisor_name, send_line};
use super::samples::{Detail, write_samples};
use super::unit::Values;
use crate::clock::watch::Seen;
use crate::entry::{Entry, Work};
use crate::{clock, knobs, percpu, probe, workers};

/// Reports everything about a cell, as one block: its interim or final results.
pub fn report_cell(id: usize, entry: &Entry, plan: &Plan, work: &Work) {
    let part = entry.samples.is_some() && entry.pace.ended.is_none();
    let detail = match (plan.compact, part) {
        (true, _) => Detail::Statistics,
        (false, true) => Detail::Total,
        (false, false) => Detail::All,
    };
    let block = Block::begin_block(id, part);
    write_description(&block, &entry.cell, plan.iterations);
    match (entry.skipped, &entry.samples) {
        (Some(reason), _) => send_line(block.record("skipped").field("why", reason)),
        (None, Some(samples)) => {
            let values = Values::of_cpu(workers::leader_cpu(&entry.cell));
            write_samples(&block, samples, detail, values);
            write_counts(&block, entry, plan.compact || part);
            write_parts(&block, entry);
            write_core_clock(&block, &entry.core_hz);
            if entry.cell.workload.has_tasks() {
                write_kernel(&block, &entry.kernel);
            }
            if entry.cell.is_open() {
                write_load(&block, &entry.load);
            }
            if entry.cell.noise != Noise::None {
                write_noise(&block, entry.noise);
            }
        }
        (None, None) => {}
    }
    block.end(|line| {
        let line = line.field("under", hypervisor_name());
        let line = line.field("at", work.done).field("at_us", work.done_us);
        add_pace(line, entry)
    });
}

/// Writes the core's frequency at the start and the end of each pass, if it was measured.
fn write_core_clock(block: &Block, seen: &Seen) {
    if seen.is_empty() {
        return;
    }
    let mut text = ArrayString::<160>::new();
    for [begin, end] in seen {
        let separator = if text.is_empty() { "" } else { "," };
        // The text has two numbers for each of four passes. No number has more than 11 digits.
        let _ = write!(text, "{separator}{begin}:{end}");
    }
    send_line(block.record("clock").field("core_hz", text));
}

/// Adds to `line` how many passes of a cell are done, how many there are, and why the cell ended.
fn add_pace(line: Line, entry: &Entry) -> Line {
    if entry.samples.is_none() {
        return line;
    }
    let line = line.field("passes", entry.pace.passes);
    let line = line.field("passes_planned", PASSES);
    let line = line.field("made", entry.made);
    match entry.pace.ended {
        None => line,
        Some(end) => line.field("ended", end),
    }
}

fn write_description(block: &Block, cell: &Cell, iterations: u32) {
    let line = block.record("cell").field("under", hypervisor_name());
    send_line(dimensions_in(Place::Always, cell).fold(line, |line, info| {
        line.field(&field_name("", info), info.text(cell))
    }));
    write_executor(block, cell);
    // The other fields have their own line, because one line has no room for all fields if numbers are long.
    let line = block
        .record("more")
        .field("cpus", percpu::online().count())
        .field("iterations", iterations);
    let line = add_dimensions(block, line, "", cell, dimensions_in(Place::Unusual, cell));
    let line = add_pair(line, cell);
    let line = match knobs::event_stream(cell) {
        None => line,
        Some(stream) => {
            let made = clock::ticks_to_ns(stream.period());
            line.field("event_stream_made_ns", made)
        }
    };
    let mut missing = ArrayString::<120>::new();
    for name in cell.depends_on() {
        if probe::is_not_modelled(name) {
            let separator = if missing.is_empty() { "" } else { "," };
            // There is room for the names of all features on which a cell can depend.
            let _ = write!(missing, "{separator}{name}");
        }
    }
    send_line(if missing.is_empty() {
        line
    } else {
        line.field("not_modelled", missing)
    });
}

/// Adds the affinities of the two CPUs of `cell`'s pair, if it has a pair and both CPUs run.
fn add_pair(line: Line, cell: &Cell) -> Line {
    let there = cell
        .pair
        .cpus()
        .iter()
        .all(|&cpu| cpu < percpu::online().count());
    if !cell.has_pair() || !there {
        return line;
    }
    let affinity = |cpu: &percpu::PerCpu| cpu.mpidr;
    let [sender, receiver] = [workers::leader_cpu(cell), workers::receiver_cpu(cell)].map(affinity);
    line.field("sender", format_args!("{sender:#x}"))
        .field("receiver", format_args!("{receiver:#x}"))
}

/// Returns the dimensions of `cell` that records have in `place`.
fn dimensions_in(place: Place, cell: &Cell) -> impl Iterator<Item = &'static Info> {
    let here = DIMENSIONS.iter().filter(move |info| info.place == place);
    here.filter(|info| info.is_told(cell))
}

/// Returns the name of a dimension in records: `prefix` and its name, with `_` for `-` if it is a separate field.
fn field_name(prefix: &str, info: &Info) -> ArrayString<40> {
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

/// Writes the dimensions of the executor, on separate lines.
fn write_executor(block: &Block, cell: &Cell) {
    if cell.system().next().is_some() {
        let line = block.record("more");
        send_line(add_dimensions(block, line, "sys.", cell, cell.system()));
    }
}

/// Adds dimensions to `line`, after `prefix`, and begins another line whenever the line is full.
fn add_dimensions<'i>(
    block: &Block,
    line: Line,
    prefix: &str,
    cell: &Cell,
    infos: impl Iterator<Item = &'i Info>,
) -> Line {
    // The longest of these fields is a table of states.
    const LONGEST: usize = 110;
    infos.fold(line, |line, info| {
        let line = if line.room() > LONGEST {
            line
        } else {
            send_line(line);
            block.record("more")
        };
        line.field(&field_name(prefix, info), info.text(cell))
    })
}
