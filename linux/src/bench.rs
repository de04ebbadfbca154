// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the cells of a plan in passes, in the same way as Rouse's own guest ([`plan::Pace`]).

mod console;
mod knobs;
mod machine;

use std::io::{self, Write, stdout};
use std::mem;

use hist::{Histogram, Ratio};
use plan::{Arguments, BALANCED, Cell, Limits, LinuxCpuidle, Machine, PASSES, Pace, Plan, Word};

use console::Console;

use crate::counts::Counts;
use crate::hypervisor::{Below, LevelBelow};
use crate::idle::{self, Idles};
use crate::neighbour_memory::Room;
use crate::output::Output;
use crate::page::Page;
use crate::report::{self, Frame, Told};
use crate::workload::exec::Outcome;
use crate::workload::{self, SampleBlock};
use crate::{clock, cpus, options, sample};

/// A cell and its results so far.
struct CellEntry {
    cell: Cell,
    skipped: Option<String>,
    limits: Limits,
    /// Estimated duration of a pass, in microseconds.
    guess_us: u64,
    pace: Pace,
    total: Box<Histogram>,
    counts: Counts,
    made: u64,
    outcome: Outcome,
}

/// State of the measurement.
pub struct Bench {
    plan: Plan,
    page: Option<Page>,
    /// The CPUs on which threads may run.
    cpus: Vec<usize>,
    below: Below,
    idles: Idles,
    /// Cycles per tick, if values are cycles.
    cycles: Option<Ratio>,
    output: Output<Box<dyn Write>>,
    /// Number of completed passes over cells, and their estimated time in microseconds.
    done: (usize, u64),
}

/// Measures the cells that `arguments` request, and reports them on standard output.
///
/// # Errors
/// The message gives the reason why the cells can't be measured.
pub fn run(arguments: &str) -> Result<(), String> {
    run_to(arguments, Box::new(Console(stdout())))
}

/// Like [`run`], but writes the records to `to`.
///
/// # Errors
/// The message gives the reason why the cells can't be measured.
pub fn run_to(arguments: &str, to: Box<dyn Write>) -> Result<(), String> {
    let plan = options::plan(arguments)?;
    let parsed = Arguments::parse(arguments).map_err(|error| error.to_string())?;
    let found = LevelBelow::of_machine();
    let below = found.with_arguments(&parsed)?;
    let cycles = parsed.core_mhz.filter(|_| plan.cycles).map(|mhz| Ratio {
        wanted: mhz.saturating_mul(1_000_000),
        read: clock::frequency(),
    });
    let output = Output::new(to);
    measure(plan, found, below, cycles, output).map_err(|error| error.to_string())
}

fn measure(
    plan: Plan,
    found: LevelBelow,
    below: Below,
    cycles: Option<Ratio>,
    output: Output<Box<dyn Write>>,
) -> io::Result<()> {
    let page = Page::open(found)?;
    if plan
        .lists
        .linux_cpuidle
        .values
        .iter()
        .eq([&LinuxCpuidle::IdlePoll])
    {
        idle::make_idle_poll()?;
    }
    let mut bench = Bench {
        plan,
        below,
        page,
        cpus: cpus::allowed_cpus()?,
        idles: Idles::read(std::env::args()),
        cycles,
        output,
        done: (0, 0),
    };
    let instructions = clock::counts_instructions();
    bench.tell_machine(instructions)?;
    let mut entries = bench.entries(instructions);
    bench.tell_plan(&entries)?;
    // This histogram sorts the samples. It is allocated only once, so that only the first pass pays for touching the
    // memory for the first time.
    let mut before = Box::new(Histogram::new());
    for pass in 0..PASSES {
        let count = entries.len();
        for step in 0..count {
            let id = if plan::is_forwards(pass) {
                step
            } else {
                count - 1 - step
            };
            bench.run_pass(id, &mut entries[id], pass, &mut before)?;
        }
    }
    bench.send_neighbours_away()?;
    bench.tell_core_clock(&["end_hz"])?;
    let line = bench.output.record("end").field("cells", entries.len());
    bench.output.send(line)?;
    bench.output.flush()
}

/// If a cell can't run, returns the reason.
fn why_skipped(cell: &Cell, machine: &Machine) -> Option<String> {
    let reason = cell.skip_reason(machine).map(|reason| reason.to_string());
    reason.or_else(|| {
        let why = workload::missing_need(cell)?;
        Some(format!("{}: {why}", cell.workload))
    })
}

impl Bench {
    /// Returns an entry for each cell of the plan.
    fn entries(&self, instructions: bool) -> Vec<CellEntry> {
        let machine = self.machine_properties(instructions);
        let room = Room::here();
        let cells = self.plan.cells(&machine);
        let entry = |cell: Cell| {
            let limits = Limits::of(&self.plan, &cell, machine.frequency, instructions);
            let time = cell.pass_time(&limits, machine.frequency, instructions);
            CellEntry {
                skipped: why_skipped(&cell, &machine)
                    .or_else(|| self.idles.why_not_idle_as(cell.linux_cpuidle))
                    .or_else(|| room.why_no_room(cell.neighbour)),
                limits,
                guess_us: time.expected_us,
                pace: Pace::default(),
                total: Box::new(Histogram::new()),
                counts: Counts::new(),
                made: 0,
                outcome: Outcome::default(),
                cell,
            }
        };
        cells.map(entry).collect()
    }

    /// Runs a pass of a cell if one is due, and reports the cell's results so far.
    fn run_pass(
        &mut self,
        id: usize,
        entry: &mut CellEntry,
        pass: u32,
        before: &mut Histogram,
    ) -> io::Result<()> {
        let due = match entry.skipped {
            Some(_) => pass == 0,
            None => entry.pace.ended.is_none(),
        };
        if due && entry.skipped.is_none() {
            entry.skipped = self.set_knobs(&entry.cell)?;
        }
        if due && entry.skipped.is_none() {
            sample::of_cell(id);
            self.run_blocks(entry, before)?;
        }
        self.done.0 += 1;
        if entry.skipped.is_none() {
            self.done.1 += entry.guess_us;
        }
        let whole = entry.skipped.is_some() || entry.pace.ended.is_some();
        if due && (whole || !self.plan.compact) {
            self.tell_cell(id, entry)?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn run_blocks(&self, entry: &mut CellEntry, before: &mut Histogram) -> io::Result<()> {
        let limits = entry.limits;
        let judged = limits.settle && entry.pace.passes + 1 == BALANCED;
        if judged {
            before.copy_from(&entry.total);
        }
        while let Some(count) = entry.pace.next(&limits) {
            let mut block = SampleBlock::new(
                count,
                &self.cpus,
                self.page.as_ref(),
                &mut entry.total,
                &mut entry.counts,
            )
            .with_neighbours(entry.cell.neighbour.is_there());
            let ticks = workload::run(&entry.cell, &mut block)?;
            entry.made += u64::from(block.wake_ups());
            entry.outcome = mem::take(&mut block.outcome);
            if let Some(why) = &entry.outcome.failure {
                entry.skipped = Some(format!("{}: {why}", entry.cell.command));
                return Ok(());
            }
            entry.pace.add(&limits, count, ticks);
        }
        let repeats = judged && entry.total.repeats(before);
        entry.pace.end_pass(&limits, repeats);
        Ok(())
    }

    fn tell_cell(&mut self, id: usize, entry: &CellEntry) -> io::Result<()> {
        let told = Told {
            id,
            cell: &entry.cell,
            skipped: entry.skipped.as_deref(),
            total: &entry.total,
            counts: &entry.counts,
            made: entry.made,
            pace: &entry.pace,
            output: &entry.outcome.output.bytes,
            before: entry.outcome.output.before,
            note: entry.outcome.note,
            idles_by: &self.idles.to_string(),
            idle_states: &crate::idle::table(),
        };
        let frame = Frame {
            under: self.below.under.name(),
            cpus: self.cpus.len(),
            iterations: entry.limits.iterations,
            compact: self.plan.compact,
            cycles: self.cycles,
            done: self.done,
        };
        report::write_cell(&mut self.output, &told, &frame)
    }
}
