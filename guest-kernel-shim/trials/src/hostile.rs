// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a hostile guest: `rouse.hostile=CLASS,...` or `all`, with `rouse.seed=N`.
//!
//! One vCPU, the last, tries all hostile accesses of a class, in each way of delivery. Meanwhile the first
//! two vCPUs keep measuring, as they do with a harmless guest. A case is one access in one form with one expectation
//! that follows from the Arm documents: a value, an exception with its syndrome, or an error code. Cases with the
//! expected outcome are counted, and all other cases are named.
//!
//! Faults are a normal outcome here, so the hostile vCPU has its own vectors ([`attempt`]), writes the instructions
//! that it tries into a page of code ([`stubs`]) and accesses any address through a page of its own ([`window`]).
//! Accesses that a vCPU does not survive are made by other vCPUs, which are turned on for this ([`victims`]).

mod attempt;
mod bystanders;
mod calls;
mod devices;
mod faults;
mod ids;
mod lists;
mod neighbour;
mod power;
mod registers;
mod ruin;
mod sgis;
mod shapes;
mod space;
mod stubs;
mod switches;
mod system;
mod tally;
mod timers;
mod victims;
mod waits;
mod walks;
mod window;

use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use pages::Pool;
use plan::{Cell, Deliver, Plan, Trap, Wait, Workload};
use spin::mutex::SpinMutex;
use wait::request::REQUESTS;

use bystanders::TRIPS;
use guest_kernel_shim::idle;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::workers::{self, Job};
use guest_kernel_shim::workload::pingpong::Near;
use guest_kernel_shim::workload::preparation::Gap;
use guest_kernel_shim::workload::samples::Samples;
use guest_kernel_shim::{hypervisor, knobs, output, stage};
use sched::random::Random;
use tally::Tally;

use crate::records;

/// A class of hostile accesses.
struct Class {
    name: &'static str,
    run: fn(&mut Tally, &mut Random),
    /// Number of CPUs that the class needs: two that measure, the hostile CPU, and its victims.
    cpus: usize,
    /// Whether the class runs in both ways of delivery, or only in the plan's way.
    both: bool,
    /// Whether the class needs direct delivery.
    direct: bool,
}

impl Class {
    const fn new(name: &'static str, run: fn(&mut Tally, &mut Random)) -> Self {
        Self {
            name,
            run,
            cpus: 3,
            both: true,
            direct: false,
        }
    }

    const fn with_cpus(self, cpus: usize) -> Self {
        Self { cpus, ..self }
    }

    const fn with_direct(self) -> Self {
        Self {
            direct: true,
            ..self
        }
    }

    const fn once(self) -> Self {
        Self {
            both: false,
            ..self
        }
    }
}

const CLASSES: &[Class] = &[
    Class::new("space", space::run).once(),
    Class::new("walks", walks::run).once(),
    Class::new("calls", calls::run),
    Class::new("power", power::run).with_cpus(4),
    Class::new("ids", ids::run).once(),
    Class::new("registers", registers::run),
    Class::new("system", system::run).once(),
    Class::new("sgis", sgis::run),
    Class::new("devices", devices::run),
    Class::new("lists", lists::run),
    Class::new("timers", timers::run),
    Class::new("waits", waits::run),
    Class::new("faults", faults::run).with_cpus(4),
    Class::new("switches", switches::run)
        .with_cpus(4)
        .with_direct()
        .once(),
    // This class is last, because its victims can't be turned on again.
    Class::new("ruin", ruin::run).with_cpus(5).once(),
];

/// The order for the hostile CPU: a class, and how interrupts are delivered.
static ORDER: SpinMutex<Option<(&'static Class, Deliver)>> = SpinMutex::new(None);
static SEED: AtomicU64 = AtomicU64::new(1);
/// Whether the hostile CPU has finished its order.
static DONE: AtomicBool = AtomicBool::new(false);
static WRONG: AtomicU32 = AtomicU32::new(0);

/// Number of round trips in one measurement.
const BLOCK: u32 = 20;

/// Runs the classes of `names`, or all; returns the number of wrong cases.
pub fn run(names: &str, seed: u64, plan: &Plan, pool: &mut Pool) -> u64 {
    stage!("hostile", "{names}, seed {seed}");
    if !hypervisor::exists() {
        output::print(format_args!("hostile: needs the hypervisor below it"));
        return 1;
    }
    SEED.store(seed, Release);
    neighbour::note_plan(plan);
    victims::note_frames();
    let samples = Samples::place_in(pool, 0);
    if let Some(unknown) = names.split(',').find(|name| !is_class(name)) {
        output::print(format_args!(
            "hostile {unknown}: there is no class of that name"
        ));
        return 1;
    }
    let named = |class: &&Class| {
        names
            .split(',')
            .any(|name| name == "all" || name == class.name)
    };
    for class in CLASSES.iter().filter(named) {
        if percpu::all().len() < class.cpus {
            let cpus = class.cpus;
            output::print(format_args!(
                "hostile {}: skipped: needs {cpus} CPUs",
                class.name
            ));
            continue;
        }
        if class.direct && platform().gic.version2.is_some() {
            output::print(format_args!(
                "hostile {}: skipped: a GICv2 has no direct delivery",
                class.name
            ));
            continue;
        }
        let both = [Deliver::Inject, Deliver::Direct];
        let one = [plan.lists.deliver.values[0]];
        let ways = if class.both { &both[..] } else { &one };
        for &deliver in ways.iter().filter(|&&deliver| can_deliver(deliver)) {
            run_against(class, deliver, plan, samples);
        }
    }
    u64::from(WRONG.load(Acquire))
}

/// Whether a class can run with this delivery: a GICv2 has no direct delivery, and next to a
/// neighbour no interrupt would end a turn.
fn can_deliver(deliver: Deliver) -> bool {
    deliver == Deliver::Inject || platform().gic.version2.is_none() && !neighbour::has_neighbours()
}

/// Whether `name` is the name of a class, or `all`.
fn is_class(name: &str) -> bool {
    name == "all" || CLASSES.iter().any(|class| class.name == name)
}

/// Lets the last CPU run `class`, while the first two measure.
fn run_against(class: &'static Class, deliver: Deliver, plan: &Plan, samples: &mut Samples) {
    let hostile = percpu::all()[percpu::all().len() - 1];
    samples.total.clear();
    TRIPS.store(0, Release);
    DONE.store(false, Release);
    *ORDER.lock() = Some((class, deliver));
    workers::start_on(hostile, run_order);
    // The loop measures once more when the class is done, because some effects may only show then.
    let mut last = false;
    while !last {
        last = DONE.load(Acquire);
        measure_trips(&measured_cell(plan, deliver), samples);
    }
    let total = &samples.total;
    records::report_hostile(class.name, deliver, total.count(), total.quantile(500));
}

/// Measures round trips between the first two CPUs.
fn measure_trips(cell: &Cell, samples: &mut Samples) {
    let job = Job {
        cell: *cell,
        count: BLOCK,
        traced: false,
    };
    let mut near = Near {
        waker: knobs::new_waker(cell, percpu::all()[1]),
        count: BLOCK,
        before: Gap(0),
        samples,
    };
    workers::run_job(job, || idle::run_body(&knobs::wait_mode(cell), &mut near));
    PerCpu::this().request.take(REQUESTS);
    TRIPS.fetch_add(BLOCK, AcqRel);
}

/// Returns the cell that the measuring CPUs measure, which says how they wait.
fn measured_cell(plan: &Plan, deliver: Deliver) -> Cell {
    Cell {
        workload: Workload::Pingpong,
        wait: Wait::Wfi,
        trap: plan.lists.trap.values[0],
        deliver,
        neighbour: plan.lists.neighbour.values[0],
        ..Cell::default()
    }
}

/// Carries out the order for the hostile CPU, which is the running CPU.
fn run_order() {
    let order = ORDER.lock().take();
    let Some((class, deliver)) = order else {
        return;
    };
    hypervisor::set_deliver(deliver);
    let mut random = Random::new(SEED.load(Acquire));
    let mut tally = Tally::new(class.name, deliver);
    neighbour::give_neighbour();
    arch::insn::mask_irq();
    attempt::with_vectors(|| (class.run)(&mut tally, &mut random));
    arch::insn::unmask_irq();
    neighbour::check_and_end(&mut tally);
    hypervisor::set_deliver(Deliver::Inject);
    hypervisor::set_trap(Trap::None);
    WRONG.fetch_add(tally.finish(), AcqRel);
    DONE.store(true, Release);
}
