// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the counters of a cell. Counters of time are in ticks.

use core::fmt::Write;

use abi::{Counter, Shared};
use arrayvec::{ArrayString, ArrayVec};
use parts::{CAUSES, Part, Totals};

use super::block::Block;
use super::record::send_line;
use crate::entry::Entry;
use crate::entry::Rounds;
use crate::exits;
use crate::kernel::stats::{self, STATES, Stat};
use crate::tally::Event;
use crate::workload::arrivals::Load;

/// Writes exits and events.
pub fn write_counts(block: &Block, entry: &Entry, compact: bool) {
    /// Number of counters that fit in a line, whatever their values are.
    const PER_LINE: usize = 6;
    let value = |counter: Counter| entry.counts.exits[counter as usize];
    let counters: ArrayVec<Counter, { Counter::COUNT }> = Counter::ALL
        .iter()
        .copied()
        .filter(|&counter| exits::is_counted(counter) && !(compact && value(counter) == 0))
        .collect();
    for some in counters.chunks(PER_LINE) {
        let line = block.record("count");
        send_line(some.iter().fold(line, |line, &counter| {
            line.field(counter.name(), value(counter))
        }));
    }
    let mut line = block.record("count");
    for ((event, name), value) in Event::ALL.iter().zip(entry.counts.events) {
        // Pauses are counted only where time stamps are taken.
        if *event != Event::Pauses {
            line = line.field(name, value);
        }
    }
    send_line(line);
    if entry.cell.has_pair() && !compact {
        let [sender, receiver, others] = entry.counts.ends;
        let line = block.record("count").field("pair.sender", sender);
        let line = line.field("pair.receiver", receiver);
        send_line(line.field("pair.others", others));
    }
    if entry.cell.neighbour.is_there() {
        write_neighbours(block, entry);
    }
    if let Some([cycles, insns]) = entry.counts.pmu.filter(|pmu| *pmu != [0; 2]) {
        let line = block.record("count").field("pmu.cycles", cycles);
        send_line(line.field("pmu.insns", insns));
    }
}

/// Writes what the neighbours on the participating CPUs counted, and how long these CPUs took
/// part.
fn write_neighbours(block: &Block, entry: &Entry) {
    let line = block.record("count");
    let first = line.field("neighbour.ticks", entry.counts.ticks);
    let counts = Shared::ALL.iter().zip(entry.counts.shared);
    send_line(
        counts
            .clone()
            .take(4)
            .fold(first, |line, (what, count)| line.field(what.name(), count)),
    );
    let line = block.record("count");
    send_line(
        counts
            .skip(4)
            .fold(line, |line, (what, count)| line.field(what.name(), count)),
    );
}

/// Writes the counts of the kernel's executor.
pub fn write_kernel(block: &Block, totals: &stats::Totals) {
    let span = block.record("count");
    send_line(span.field("span.ticks", totals.span));
    let stats = Stat::ALL.map(|(stat, name)| (name, totals.stats[stat as usize]));
    for some in stats.chunks(5) {
        let line = block.record("count");
        send_line(
            some.iter()
                .fold(line, |line, &(name, value)| line.field(name, value)),
        );
    }
    for (state, tally) in STATES.iter().zip(&totals.states) {
        let values = [
            ("usage", tally.usage),
            ("rejected", tally.rejected),
            ("time-ns", tally.time_ns),
            ("above", tally.above),
            ("below", tally.below),
        ];
        if tally.usage == 0 && tally.rejected == 0 {
            continue;
        }
        let mut line = block.record("count");
        for (what, value) in values {
            let mut name = ArrayString::<40>::new();
            // The names of states are short, so the text fits.
            let _ = write!(name, "cpuidle.{state}.{what}");
            line = line.field(&name, value);
        }
        send_line(line);
    }
}

/// Reports the intervals between the requests of an open loop, and the longest queue.
pub fn write_load(block: &Block, load: &Load) {
    let line = block
        .record("count")
        .field("arrivals.intervals", load.intervals)
        .field("arrivals.asked-ticks", load.asked)
        .field("arrivals.reached-ticks", load.reached);
    send_line(line.field("arrivals.longest-queue", load.longest));
}

/// Writes the number of noise rounds, for all CPUs together and for each CPU that made any.
pub fn write_noise(block: &Block, rounds: &Rounds) {
    /// Number of fields that fit in a line, whatever their values are.
    const PER_LINE: usize = 5;
    let all = rounds.iter().sum::<u64>();
    send_line(block.record("count").field("noise.rounds", all));
    let made = rounds
        .iter()
        .enumerate()
        .filter(|(_, rounds)| **rounds != 0);
    let mut made = made.peekable();
    while made.peek().is_some() {
        let line = block.record("count");
        send_line(
            made.by_ref()
                .take(PER_LINE)
                .fold(line, |line, (cpu, rounds)| {
                    let mut name = ArrayString::<40>::new();
                    // The number of a CPU is short, so the text fits.
                    let _ = write!(name, "noise.cpu{cpu}");
                    line.field(&name, *rounds)
                }),
        );
    }
}

/// Reports where the CPUs were within the samples with time stamps, in ticks.
pub fn write_parts(block: &Block, entry: &Entry) {
    let Totals {
        parts,
        ticks,
        samples,
        lost,
    } = entry.parts;
    if samples + lost == 0 {
        return;
    }
    let line = block
        .record("count")
        .field("stamped.samples", samples)
        .field("stamped.lost", lost)
        .field("stamped.ticks", ticks);
    let pauses = entry.stamped.events[Event::Pauses as usize];
    send_line(line.field("poll.pauses", pauses));
    if samples == 0 {
        return;
    }
    let at = |part: Part| parts[part.index()];
    let at_el2 = CAUSES.iter().enumerate();
    let at_el2 = at_el2.map(|(cause, name)| (*name, at(Part::El2(cause))));
    let line = block
        .record("count")
        .field("res.run", at(Part::Run))
        .field("res.poll", at(Part::Poll))
        .field("res.wfi", at(Part::Wfi));
    send_line(line.field(
        "res.el2",
        at_el2.clone().map(|(_, ticks)| ticks).sum::<u64>(),
    ));
    let mut line = block.record("count");
    for (name, ticks) in at_el2.filter(|(_, ticks)| *ticks != 0) {
        let mut field = ArrayString::<40>::new();
        // The names of causes are short, so the text fits.
        let _ = write!(field, "time.{name}");
        line = line.field(&field, ticks);
    }
    send_line(line);
}
