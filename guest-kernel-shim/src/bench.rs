// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the cells, one after another, in interleaved passes: see [`plan::PASSES`]. The results
//! of a cell are reported after each of its passes.

mod pass;

use abi::Info;
use arrayvec::ArrayVec;
use pages::Pool;
use parts::Account;
use pass::Scratch;
use plan::{Cache, Cell, Limits, Machine, PASSES, Pace, Plan, Shape, Wake, Workload};
use platform::MAX_CPUS;
use sched::load::Load;
use spin::mutex::SpinMutex;

use crate::block::Block;
use crate::clock::watch::{Seen, Watch};
use crate::counts::Counts;
use crate::entry::{Entry, Work};
use crate::features::features;
use crate::idle::{self, limited_poll};
use crate::kernel::stats::Totals;
use crate::machine::platform;
use crate::percpu::{self, PerCpu};
use crate::setting::Setting;
use crate::wake::Waker;
use crate::workers::{self, Job, noise};
use crate::workload::arrivals;
use crate::workload::ipi::Caller;
use crate::workload::overshoot::Poller;
use crate::workload::pingpong::Near;
use crate::workload::preparation::{Before, Cold, Gap};
use crate::workload::samples::{self, Samples};
use crate::workload::stream::Listener;
use crate::workload::{call, stages, times};
use crate::{atomics, clock, hypervisor, interrupts, knobs, logs, planted, probe, report};

/// Number of progress records in a pass.
const STEPS: usize = 8;

/// Measures all cells and reports the results; request times are derived from `seed`.
pub fn run(plan: &Plan, seed: u64, pool: &mut Pool) {
    let machine = Machine {
        cpus: percpu::online().count(),
        wfxt: features().wfxt,
        lse: atomics::all_cpus_have_lse(),
        ecv: features().ecv,
        frequency: clock::frequency(),
        linux: false,
        under: hypervisor::hypervisor_below(),
        given: hypervisor::given_knobs(),
        cpus_at_once: !probe::is_not_modelled("cpus_run_at_once"),
        caches: plan.assume_caches || !probe::is_not_modelled(probe::CACHES),
        event_loses_irq: plan.event_loses_irq,
        gicv2: platform().gic.version2.is_some(),
    };
    let entries = make_entries(plan, &machine, pool);
    let stamps = entries.iter().any(|entry| plan.takes_stamps(&entry.cell));
    let mut scratch = Scratch::place_in(pool, stamps);
    let count = entries.len();
    let mut work = Work::from_entries(entries);
    report::report_plan(plan, entries, &work);
    let watch = Watch::if_measurable();
    let deadlines = hypervisor::exists() && hypervisor::info(Info::Deadline) != 0;
    if deadlines {
        // A CPU with direct delivery also takes the interrupts of EL2's timer.
        interrupts::set_listener(Some(hand_on_timer));
        hypervisor::hand_on_timer();
    }
    for pass in 0..PASSES {
        let forwards = plan::is_forwards(pass);
        report::report_order(pass, forwards, count);
        for step in 0..count {
            let id = if forwards { step } else { count - 1 - step };
            let entry = &mut entries[id];
            let begun = entry.is_due(pass);
            if begun && deadlines {
                hypervisor::begin_cell(id, pass, &entry.cell);
            }
            planted::at_pass(id, count, pass);
            if begun && entry.samples.is_some() {
                samples::samples_of_cell(id as u64);
                pass::run(entry, &mut scratch, seed, &watch);
                samples::samples_of_cell(u64::MAX);
            }
            work.add(entry);
            if begun {
                pass::report_cell(id, entry, plan, &mut scratch, &work);
            }
            let done = pass as usize * count + step + 1;
            if done.is_multiple_of(count.div_ceil(STEPS)) {
                report::report_progress(&work, &entry.cell);
            }
        }
    }
    if deadlines {
        hypervisor::end_cells();
    }
    report::clocks::report_at_end(plan);
    report::report_end(count);
}

/// Passes an interrupt of EL2's timer on to EL2.
fn hand_on_timer(_: &PerCpu, intid: u32) {
    if Some(intid) == platform().timer.hyp {
        hypervisor::hand_on_timer();
    }
}

/// Returns the cells of the plan, with memory for the samples of cells that can run.
fn make_entries(plan: &Plan, machine: &Machine, pool: &mut Pool) -> &'static mut [Entry] {
    let count = plan.cells(machine).count();
    let instructions = clock::counts_instructions();
    let mut cells = plan.cells(machine);
    // The sizes depend on the number of CPUs found, because there can be many.
    let cpus = percpu::all().len();
    let busy = pool.fill((0..count * cpus).map(|_| Load::new()));
    let mut busy = busy.chunks_exact_mut(cpus);
    let rounds = pool.fill((0..count * cpus).map(|_| 0));
    let mut rounds = rounds.chunks_exact_mut(cpus);
    let entries = pool.fill((0..count).map(|_| {
        let cell = cells.next().expect("as many as were counted");
        Entry {
            cell,
            skipped: cell.skip_reason(machine),
            limits: Limits::of(plan, &cell, machine.frequency, instructions),
            pace: Pace::default(),
            core_hz: Seen::new(),
            samples: None,
            counts: Counts::ZERO,
            made: 0,
            stamped: Counts::ZERO,
            parts: parts::Totals::ZERO,
            kernel: Totals::ZERO,
            load: arrivals::Load::ZERO,
            busy: busy.next().unwrap_or_default(),
            noise: rounds.next().unwrap_or_default(),
        }
    }));
    let cells = || entries.iter().filter(|entry| entry.skipped.is_none());
    let drawn = cells().map(|entry| plan.drawn(&entry.cell)).max();
    arrivals::place_times(pool, drawn.unwrap_or(0));
    let streamed = cells().map(|entry| entry.cell.noise.memory()).max();
    noise::place_memory(pool, streamed.unwrap_or(0));
    for entry in entries.iter_mut().filter(|entry| entry.skipped.is_none()) {
        let raw = if plan.raw { plan.iterations } else { 0 };
        entry.samples = Some(Samples::place_in(pool, raw));
    }
    entries
}

/// Runs `count` iterations of a cell. The function is not inlined, because an independent count of
/// the samples starts at this function, which is found by its name in the debug information.
#[inline(never)]
fn block(entry: &mut Entry, count: u32) {
    match entry.cell.cache {
        Cache::Warm => run_block_after(entry, count, Gap(clock::us_to_ticks(entry.cell.gap_us))),
        Cache::Cold => run_block_after(entry, count, Cold::from_cell(&entry.cell)),
    }
}

/// Runs the iterations, each preceded by `before`. The loop is a separate function, so that its callers
/// are laid out apart from the measured code.
#[inline(never)]
fn run_block_after(entry: &mut Entry, count: u32, before: impl Before) {
    let Some(samples) = entry.samples.as_deref_mut() else {
        return;
    };
    let cell = entry.cell;
    let job = Job {
        cell,
        count,
        traced: false,
    };
    let made = samples::round_count(cell.workload, count);
    call::prepare_calls(made);
    let counts = match cell.workload {
        Workload::Pingpong => {
            let mut near = Near {
                waker: knobs::new_waker(&cell, workers::receiver_cpu(&cell)),
                count,
                before,
                samples,
            };
            workers::run_job(job, || idle::run_body(&knobs::wait_mode(&cell), &mut near))
        }
        _ => {
            let mut wakers = WAKERS.lock();
            wakers.clear();
            wakers.extend(target_cpus(&cell).map(|target| knobs::new_waker(&cell, target)));
            let mut caller = Caller {
                shape: cell.shape,
                wakers: &wakers,
                count,
                before,
                at_once: cell.wake == Wake::Ipi,
                samples,
            };
            workers::run_job(job, || caller.run())
        }
    };
    entry.made += u64::from(made);
    entry.counts.add(&Counts::ZERO, &counts);
    // Drops requests to this CPU's own task, left by the last function call of a block.
    PerCpu::this().request.take(wait::request::REQUESTS);
}

/// Runs a block of tasks on the executor.
#[inline(never)]
fn run_task_block(entry: &mut Entry, count: u32, seed: u64) {
    let Some(samples) = entry.samples.take() else {
        return;
    };
    let cell = entry.cell;
    times::set_seed(seed, entry.pace.done);
    if cell.is_open() {
        arrivals::draw_times(&cell, count, entry.pace.done, seed);
    }
    let before = samples.total.count();
    let block = Block { cell, count };
    block.prepare_shared_state(entry.busy);
    block.begin_on_cpu();
    samples::set_place(Some(samples));
    let job = Job {
        cell,
        count,
        traced: false,
    };
    let counts = workers::run_job(job, || block.run());
    entry.samples = samples::set_place(None);
    let samples = entry
        .samples
        .as_ref()
        .map_or(0, |samples| samples.total.count());
    // Each task has taken `count` samples.
    let tasks = (samples - before) / u64::from(count.max(1));
    entry.made += tasks * u64::from(samples::round_count(cell.workload, count));
    entry.counts.add(&Counts::ZERO, &counts);
    Block::save_utilisation(entry.busy);
    let totals = Block::totals();
    entry.kernel.add(&totals);
    if cell.is_open() {
        entry.load.add(&cell, count);
    }
}

/// Runs a block of a workload that one CPU runs by itself.
#[inline(never)]
fn run_one_cpu_block(entry: &mut Entry, count: u32) {
    let Some(samples) = entry.samples.as_deref_mut() else {
        return;
    };
    let cell = entry.cell;
    let job = Job {
        cell,
        count,
        traced: false,
    };
    let stream = knobs::event_stream(&cell);
    let counts = match (cell.workload, stream) {
        (Workload::Stream, Some(stream)) => {
            let mut listener = Listener {
                stream,
                count,
                samples,
            };
            workers::run_job(job, || listener.run())
        }
        _ => {
            let mut poller = Poller {
                count,
                gap: clock::us_to_ticks(cell.gap_us),
                stream,
                samples,
            };
            workers::run_job(job, || {
                limited_poll::run_body(&knobs::wait_mode(&cell), &mut poller)
            })
        }
    };
    entry.made += u64::from(count);
    entry.counts.add(&Counts::ZERO, &counts);
}

/// Runs `count` more iterations of a cell with time stamps, if the cell takes time stamps.
fn run_stamped(entry: &mut Entry, count: u32) {
    match entry.cell.cache {
        Cache::Warm => run_stamped_after(entry, count, Gap(clock::us_to_ticks(entry.cell.gap_us))),
        Cache::Cold => run_stamped_after(entry, count, Cold::from_cell(&entry.cell)),
    }
}

/// Runs the iterations with time stamps, each preceded by `before`.
fn run_stamped_after(entry: &mut Entry, count: u32, before: impl Before) {
    let cell = entry.cell;
    let samples = entry.samples.as_deref_mut();
    let Some(samples) = samples.and_then(|samples| samples.stamped.as_deref_mut()) else {
        return;
    };
    let job = Job {
        cell,
        count,
        traced: true,
    };
    let far = workers::receiver_cpu(&cell);
    let Some(logs) = logs::all_logs() else {
        return;
    };
    logs::set_measuring_cpu(PerCpu::this());
    // Without a hypervisor, no wait traps.
    let halts = !(cell.trap.wfi() && hypervisor::exists());
    let mut near = stages::Near {
        waker: knobs::new_waker(&cell, far),
        count,
        before,
        samples,
        logs,
        account: Account::new(logs.each_ref().map(|logs| logs.each_ref()), halts),
        end: 0,
    };
    let setting = Setting {
        timed: true,
        noting: true,
        ..knobs::wait_mode(&cell)
    };
    entry.stamped = workers::run_job(job, || idle::run_body(&setting, &mut near));
    entry.parts = near.totals();
}

/// Returns the CPUs that the leader wakes.
fn target_cpus(cell: &Cell) -> impl Iterator<Item = &'static PerCpu> {
    let one = match cell.shape {
        Shape::Dry | Shape::Broadcast => None,
        Shape::Itself => Some(workers::leader_cpu(cell)),
        Shape::One => Some(workers::receiver_cpu(cell)),
    };
    let others = matches!(cell.shape, Shape::Broadcast);
    let others = percpu::online().skip(1).filter(move |_| others);
    one.into_iter().chain(others)
}

/// The wakers of the measured cell's targets, which would not fit on a stack.
static WAKERS: SpinMutex<ArrayVec<Waker, MAX_CPUS>> = SpinMutex::new(ArrayVec::new_const());
