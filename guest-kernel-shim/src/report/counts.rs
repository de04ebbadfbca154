// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a cell. Whatever is a time among them is in ticks.

use core::fmt::Write;

use abi::Counter;
use arrayvec::{ArrayString, ArrayVec};

use super::block::Block;
use super::record::send;
use crate::counts::Counts;
use crate::entry::Entry;
use crate::hypervisor;
use crate::kernel::stats::{STATES, Stat, Totals};
use crate::tally::Event;

/// Exits, events and what ended the waits.
pub fn counts(block: &Block, entry: &Entry, compact: bool) {
    /// Counters that a line holds whatever their values are.
    const PER_LINE: usize = 6;
    let value = |counter: Counter| entry.counts.exits[counter as usize];
    let counters: ArrayVec<Counter, { Counter::COUNT }> = Counter::ALL
        .iter()
        .copied()
        .filter(|&counter| hypervisor::present() && !(compact && value(counter) == 0))
        .collect();
    for some in counters.chunks(PER_LINE) {
        let line = block.record("count");
        send(some.iter().fold(line, |line, &counter| {
            line.field(counter.name(), value(counter))
        }));
    }
    let mut line = block.record("count");
    for ((event, name), value) in Event::ALL.iter().zip(entry.counts.events) {
        // Pauses are only counted where time stamps are taken.
        if *event != Event::Pauses {
            line = line.field(name, value);
        }
    }
    // A wait ends by interrupt or, while it polls, by what it sees.
    let taken = entry.counts.events[Event::Taken as usize];
    line = line
        .field("wake.irq", taken.min(entry.waits))
        .field("wake.event", entry.waits.saturating_sub(taken));
    send(line);
}

/// What the executor counted.
pub fn kernel(block: &Block, totals: &Totals) {
    let span = block.record("count");
    send(span.field("span.ticks", totals.span));
    let stats = Stat::ALL.map(|(stat, name)| (name, totals.stats[stat as usize]));
    for some in stats.chunks(5) {
        let line = block.record("count");
        send(
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
            // The names of states are short.
            let _ = write!(name, "cpuidle.{state}.{what}");
            line = line.field(&name, value);
        }
        send(line);
    }
}

/// Ticks at EL2 by cause. Calls are left out: they are those that read the
/// stamps.
const TIMES: [(Counter, &str); 8] = [
    (Counter::Wfi, "time.wfi"),
    (Counter::Wfe, "time.wfe"),
    (Counter::Sgi, "time.sgi"),
    (Counter::Irq, "time.irq"),
    (Counter::Sysreg, "time.sysreg"),
    (Counter::Mmio, "time.mmio"),
    (Counter::Maintenance, "time.maintenance"),
    (Counter::Other, "time.other"),
];

/// Where the CPUs were while time stamps were taken, in ticks: at EL2 by cause,
/// and altogether. Trapped halts are halts; what is left is running.
pub fn residency(block: &Block, stamped: &Counts) {
    if stamped.duration == 0 {
        return;
    }
    let event = |event: Event| stamped.events[event as usize];
    let halted_at_el2 = stamped.times[Counter::Halt as usize];
    let mut el2 = 0;
    let mut line = block.record("count");
    for (counter, name) in TIMES {
        let ticks = stamped.times[counter as usize];
        el2 += ticks;
        if ticks != 0 {
            line = line.field(name, ticks);
        }
    }
    // Where WFI traps, EL2 knows how long it halted; where it does not, the
    // guest does. EL2's part of polls that trap or are interrupted is EL2's.
    let wfi = match halted_at_el2 {
        0 => event(Event::HaltTicks),
        ticks => ticks,
    };
    let within = stamped.times[Counter::Wfe as usize] + stamped.times[Counter::Irq as usize];
    let poll = event(Event::PollTicks).saturating_sub(within);
    let run = stamped.duration.saturating_sub(wfi + poll + el2);
    send(line);
    let line = block
        .record("count")
        .field("pmu.cycles", stamped.pmu[0])
        .field("pmu.insns", stamped.pmu[1])
        .field("poll.pauses", event(Event::Pauses))
        .field("res.run", run)
        .field("res.poll", poll)
        .field("res.wfi", wfi)
        .field("res.el2", el2);
    send(line);
}
