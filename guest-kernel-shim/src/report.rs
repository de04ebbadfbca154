// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records: what leaves the guest. `docs/records.md` describes them.

use core::fmt::{self, Write};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{MIDR_EL1, Readable};
use abi::{Counter, Info};
use arrayvec::{ArrayString, ArrayVec};
use hist::Histogram;
use plan::{Cell, Hint, HostPoll, Obstacle, Plan};
use wait::stream::Stream;
use wire::Line;

use crate::bench::Entry;
use crate::crew::{self, Counts};
use crate::kernel::stats::{STATES, Stat, Totals};
use crate::tally::Event;
use crate::workload::Samples;
use crate::workload::stages::STAGES;
use crate::{clock, hypervisor, output, percpu, probe};

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

/// What the machine is: `boot`, `machine`, `feature` and `unit`.
pub fn machine() {
    let info = |info| match hypervisor::present() {
        true => hypervisor::info(info),
        false => 0,
    };
    let (vtr, pidr2) = (info(Info::Vtr), info(Info::Pidr2));
    let firmware = match info(Info::Acpi) {
        1 => "acpi",
        _ => "fdt",
    };
    let version = env!("CARGO_PKG_VERSION");
    send(
        record("boot")
            .field("under", under())
            .field("version", version),
    );
    let line = record("machine")
        .field("midr", format_args!("{:#x}", MIDR_EL1.get()))
        .field("cpus", percpu::online().count())
        .field("cntfrq_hz", clock::frequency())
        .field("firmware", firmware);
    send(if hypervisor::present() {
        line.field("gic", format_args!("v{}", pidr2 >> 4 & 0xf))
            .field("list_registers", (vtr & 0x1f) + 1)
            .field("sgi_without_exit", hypervisor::info(Info::Typer2) >> 8 & 1)
    } else {
        line
    });
    for (name, value) in probe::features().list() {
        send(record("feature").field("name", name).field("value", value));
    }
    if hypervisor::present() && hypervisor::info(Info::Typer2) >> 8 & 1 != 0 {
        let text = "the GIC can deliver SGIs without EL2 (GICv4.1); not used: it needs an ITS";
        send(record("note").field("text", text));
    }
    let stream = Stream::nearest(100, clock::frequency(), probe::features().ecv);
    if let Some(stream) = stream {
        let made = clock::nanoseconds(stream.period());
        let text = format_args!("event stream: asked for 100000 ns, the counter makes {made} ns");
        send(record("note").field("text", text));
    }
    for (name, answer) in probe::answers() {
        let value = match answer.value {
            Some(true) => "true",
            Some(false) => "false",
            None => "not-run",
        };
        let line = record("probe").field("name", name).field("value", value);
        send(line.field("detail", answer));
    }
    let (unit, how) = if clock::counts_instructions() {
        (
            "insns",
            "CNTVCT counts every instruction of the machine, one tick each",
        )
    } else {
        ("ticks", "CNTVCT")
    };
    send(record("unit").field("unit", unit).field("how", how));
}

/// The order of a pass.
pub fn order(pass: u32, forwards: bool, cells: usize) {
    let direction = if forwards { "forwards" } else { "backwards" };
    let line = record("order").field("pass", pass);
    send(line.field("direction", direction).field("cells", cells));
}

/// What CPUs measured beside a hostile one: their round trips, and the median, ticks.
pub fn hostile(class: &str, deliver: plan::Deliver, trips: u64, median: u64) {
    let line = record("hostile").field("class", class);
    let line = line.field("deliver", deliver);
    send(line.field("trips", trips).field("p50", median));
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

/// Everything of a cell, as one block.
pub fn cell(id: usize, entry: &Entry, plan: &Plan) {
    let first = NEXT.load(Relaxed);
    describe(id, &entry.cell, plan.iterations);
    match (entry.obstacle, &entry.samples) {
        (Some(obstacle), _) => skipped(id, obstacle),
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

/// What was measured of a cell; `compact` is the statistics alone.
fn measured(id: usize, samples: &Samples, compact: bool) {
    let put = |name, histogram: &Histogram| {
        statistics(id, name, histogram);
        if !compact {
            buckets(id, name, histogram);
        }
    };
    put("total", &samples.total);
    raw(id, samples);
    let stages = STAGES.iter().copied().zip(&samples.stages);
    let others = [("handler", &samples.handler), ("traced", &samples.traced)];
    for (name, histogram) in stages.chain(others) {
        if histogram.count() != 0 {
            put(name, histogram);
        }
    }
}

fn describe(id: usize, cell: &Cell, iterations: u32) {
    let line = record("cell")
        .field("id", id)
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
    system(id, cell);
    // The rest has a line of its own: with long numbers one would not do.
    let line = record("more")
        .field("id", id)
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
fn system(id: usize, cell: &Cell) {
    let mut line = None;
    let done = cell.system.each(|key, value| {
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
        let mut name = ArrayString::<40>::new();
        write!(name, "sys.{key}")?;
        line = Some(begun.field(&name, value));
        Ok::<(), core::fmt::Error>(())
    });
    done.expect("the names of dimensions are short");
    line.into_iter().for_each(send);
}

fn skipped(id: usize, obstacle: Obstacle) {
    send(record("skipped").field("id", id).field("why", obstacle));
}

fn statistics(id: usize, name: &str, samples: &Histogram) {
    let line = record("stat")
        .field("id", id)
        .field("name", name)
        .field("count", samples.count())
        .field("min", samples.min());
    let quantiles = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)];
    let line = quantiles.iter().fold(line, |line, &(name, per_mille)| {
        line.field(name, samples.quantile(per_mille))
    });
    send(line.field("max", samples.max()).field("sum", samples.sum()));
}

/// The histogram, as many lines as it takes.
fn buckets(id: usize, name: &str, samples: &Histogram) {
    let put = |text: &str| {
        let line = record("hist").field("id", id).field("name", name);
        send(line.field("b", text));
    };
    let mut text = ArrayString::<160>::new();
    for (value, count) in samples.buckets() {
        // A bucket takes at most 13 and 10 digits and two separators.
        if text.remaining_capacity() < 25 {
            put(&text);
            text.clear();
        }
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{value}:{count}");
    }
    put(&text);
}

/// The samples themselves, if they were kept, as many lines as it takes.
fn raw(id: usize, samples: &Samples) {
    let put = |text: &str| {
        let line = record("raw").field("id", id).field("name", "total");
        send(line.field("v", text));
    };
    let mut text = ArrayString::<160>::new();
    let kept = samples.raw.as_deref().unwrap_or_default();
    for value in &kept[..samples.kept] {
        // A value has at most 20 digits.
        if text.remaining_capacity() < 21 {
            put(&text);
            text.clear();
        }
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{value}");
    }
    if !text.is_empty() {
        put(&text);
    }
}

fn counts(id: usize, entry: &Entry, compact: bool) {
    /// Counters that a line holds whatever their values are.
    const PER_LINE: usize = 6;
    let value = |counter: Counter| entry.counts.exits[counter as usize];
    let counters: ArrayVec<Counter, { Counter::COUNT }> = Counter::ALL
        .iter()
        .copied()
        .filter(|&counter| hypervisor::present() && !(compact && value(counter) == 0))
        .collect();
    for some in counters.chunks(PER_LINE) {
        let line = record("count").field("id", id);
        send(some.iter().fold(line, |line, &counter| {
            line.field(counter.name(), value(counter))
        }));
    }
    let mut line = record("count").field("id", id);
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
fn kernel(id: usize, totals: &Totals) {
    let span = record("count").field("id", id);
    send(span.field("span.ticks", totals.span));
    let stats = Stat::ALL.map(|(stat, name)| (name, totals.stats[stat as usize]));
    for some in stats.chunks(5) {
        let line = record("count").field("id", id);
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
        let mut line = record("count").field("id", id);
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
fn residency(id: usize, stamped: &Counts) {
    if stamped.duration == 0 {
        return;
    }
    let event = |event: Event| stamped.events[event as usize];
    let halted_at_el2 = stamped.times[Counter::Halt as usize];
    let mut el2 = 0;
    let mut line = record("count").field("id", id);
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
    let line = record("count")
        .field("id", id)
        .field("pmu.cycles", stamped.pmu[0])
        .field("pmu.insns", stamped.pmu[1])
        .field("poll.pauses", event(Event::Pauses))
        .field("res.run", run)
        .field("res.poll", poll)
        .field("res.wfi", wfi)
        .field("res.el2", el2);
    send(line);
}
