// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a pass of a cell, one block after another, and then reports the cell.

use hist::Histogram;
use pages::Pool;
use plan::{BALANCED, End, PASSES, Plan};

use super::{block, run_one_cpu_block, run_stamped, run_task_block};
use crate::clock::watch::Watch;
use crate::entry::{Entry, Work};
use crate::workers::{self, noise};
use crate::workload::samples::Samples;
use crate::workload::stages::Stamped;
use crate::{clock, report};

/// Maximum number of iterations with time stamps.
const STAMPED: u32 = 200;

/// Buffers that cells use one after another.
pub struct Scratch {
    /// The samples that a cell had before its pass.
    before: &'static mut Histogram,
    /// The stages of the cell's wake-ups, if time stamps are taken.
    stamped: Option<&'static mut Stamped>,
}

impl Scratch {
    /// Returns empty buffers in `pool`'s memory. If `stamps` is set, they include memory for time stamps.
    pub fn place_in(pool: &mut Pool, stamps: bool) -> Self {
        Self {
            before: Samples::histogram(pool),
            stamped: stamps.then(|| Stamped::place_in(pool)),
        }
    }
}

/// Runs a pass of a cell on the cell's leader, and measures that core's clock before and after the pass.
pub fn run(entry: &mut Entry, scratch: &mut Scratch, seed: u64, watch: &Watch) {
    let leader = workers::leader_cpu(&entry.cell);
    let mut seen = core::mem::take(&mut entry.core_hz);
    workers::lead::run_on(leader, &mut || {
        watch.measure_around(&mut seen, || run_blocks(entry, scratch, seed));
    });
    entry.core_hz = seen;
}

/// Runs the blocks of a pass, one after another; see [`plan::Pace`].
fn run_blocks(entry: &mut Entry, scratch: &mut Scratch, seed: u64) {
    let limits = entry.limits;
    let judged = limits.settle && entry.pace.passes + 1 == BALANCED;
    if judged && let Some(samples) = &entry.samples {
        scratch.before.copy_from(&samples.total);
    }
    while let Some(count) = entry.pace.next(&limits) {
        let start = clock::now();
        if entry.cell.workload.has_tasks() {
            run_task_block(entry, count, seed);
        } else if entry.cell.workload.is_alone() {
            run_one_cpu_block(entry, count);
        } else {
            block(entry, count);
        }
        entry.pace.add(&limits, count, clock::now() - start);
        noise::add_rounds(&entry.cell, entry.noise);
    }
    let samples = entry.samples.as_deref();
    let repeats = judged && samples.is_some_and(|samples| samples.total.repeats(scratch.before));
    entry.pace.end_pass(&limits, repeats);
}

/// Reports the results of a cell so far, so that a run that is cut short keeps its measurements. Time stamps are taken
/// after the cell's last pass.
pub fn report_cell(id: usize, entry: &mut Entry, plan: &Plan, scratch: &mut Scratch, work: &Work) {
    let whole = entry.samples.is_none() || entry.pace.ended.is_some();
    if whole && plan.takes_stamps(&entry.cell) {
        // A cell that was skipped has no samples.
        if let Some(samples) = entry.samples.as_deref_mut()
            && let Some(place) = scratch.stamped.take()
        {
            place.clear();
            samples.stamped = Some(place);
        }
        // A slow cell gets at most one further pass.
        let most = match entry.pace.ended {
            Some(End::Budget) => entry.pace.done.div_ceil(PASSES),
            _ if entry.cell.gap_us != 0 => entry.pace.done.div_ceil(PASSES),
            _ => entry.pace.done,
        };
        if entry.skipped.is_none() {
            let leader = workers::leader_cpu(&entry.cell);
            workers::lead::run_on(leader, &mut || run_stamped(entry, most.min(STAMPED)));
        }
    }
    // Compact output, for consoles that keep little text, reports each cell only once.
    if whole || !plan.compact {
        report::report_cell(id, entry, plan, work);
    }
    if let Some(samples) = entry.samples.as_deref_mut()
        && samples.stamped.is_some()
    {
        scratch.stamped = samples.stamped.take();
    }
}
