// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets the CPUs that take part in a measurement start and end each block together.
//!
//! One CPU leads: it posts a job and wakes the CPUs that take part, and all of them set their knobs.
//! The leader is the first CPU, or the sender of the cell's pair ([`lead`]). When all CPUs are
//! ready, the leader starts them. A CPU that is done resets its knobs, stores its counts and parks. If the cell has
//! [`noise`], CPUs that take no part make the noise from before the first sample until after the last one. Between
//! jobs, CPUs wait in a plain WFI, so that they cost nothing.

pub mod lead;
pub mod noise;
mod post;

use core::hint::black_box;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use plan::{Cell, Deliver, Trap, Workload};
use spin::mutex::SpinMutex;

use self::post::{DONE, POSTED, Posted, Work, clear_wake_up, post_work, wait_until};
pub use self::post::{Job, run_on, run_on_2nd, run_on_all, set_rerun, start_on, wait_for_second};
use crate::block::Block;
use crate::counts::Counts;
use crate::hypervisor;
use crate::idle;
use crate::knobs::{new_waker, reset_knobs, set_exit_knobs, set_knobs, set_tracing, wait_mode};
use crate::logs;
use crate::percpu::{self, PerCpu};
use crate::setting::Setting;
use crate::tally::Event;
use crate::workload::ipi::Called;
use crate::workload::pingpong::Far;
use crate::workload::samples::round_count;
use crate::workload::stages::FarSide;

/// Number of members that have set their knobs.
static READY: AtomicU32 = AtomicU32::new(0);
/// Number of the job that may run.
static GO: AtomicU32 = AtomicU32::new(0);
/// Number of members that are running.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Number of the job whose last sample has been taken.
static OVER: AtomicU32 = AtomicU32::new(0);

/// Returns the CPU that leads `cell` and measures. Even a machine with one CPU has such a CPU.
pub fn leader_cpu(cell: &Cell) -> &'static PerCpu {
    let [sender, _] = cell.pair.cpus();
    running_cpu(sender)
}

/// Returns the CPU that the leader of `cell` wakes, if that is a single CPU.
pub fn receiver_cpu(cell: &Cell) -> &'static PerCpu {
    let [_, receiver] = cell.pair.cpus();
    running_cpu(receiver)
}

/// Returns the running CPU with index `place`.
fn running_cpu(place: usize) -> &'static PerCpu {
    let cpu = percpu::online().nth(place);
    cpu.expect("a cell between CPUs that do not run is skipped")
}

/// Returns the sender and the receiver of `cell`.
fn pair_cpus(cell: &Cell) -> [&'static PerCpu; 2] {
    [leader_cpu(cell), receiver_cpu(cell)]
}

/// Returns the CPUs that take part in `cell` besides the leader.
pub fn member_cpus(cell: &Cell) -> impl Iterator<Item = &'static PerCpu> + Clone {
    let between = cell.has_pair().then(|| receiver_cpu(cell));
    let count = match between {
        Some(_) => 0,
        None => cell.members(percpu::online().count()),
    };
    between
        .into_iter()
        .chain(percpu::online().skip(1).take(count))
}

/// Returns the requests sent and interrupts taken so far by the sender, by the receiver and by all other CPUs, if
/// `cell` has a pair. With these numbers, a reader can check that the named CPUs were used.
fn pair_counts(cell: &Cell) -> [u64; 3] {
    let mut sums = [0; 3];
    if cell.has_pair() {
        let ends = pair_cpus(cell);
        for cpu in percpu::online() {
            let place = ends.iter().position(|end| core::ptr::eq(*end, cpu));
            let events = [Event::Sent, Event::Elided, Event::Coalesced, Event::Taken];
            let moves = events.map(|event| cpu.tally.get(event));
            sums[place.unwrap_or(ends.len())] += moves.iter().sum::<u64>();
        }
    }
    sums
}

/// Sets the knobs `trap` and `deliver` on the first two CPUs, for the rest of the run.
pub fn set_pair_knobs(trap: Trap, deliver: Deliver) {
    static CHOICE: SpinMutex<(Trap, Deliver)> = SpinMutex::new((Trap::None, Deliver::Inject));
    fn turn() {
        let (trap, deliver) = *CHOICE.lock();
        set_exit_knobs(trap, deliver);
    }
    *CHOICE.lock() = (trap, deliver);
    turn();
    if percpu::online().count() > 1 {
        run_on_2nd(turn);
        wait_for_second();
    }
}

/// Runs `job` and returns the counts of all CPUs; `lead` is the leader's part of the job.
pub fn run_job(job: Job, lead: impl FnOnce()) -> Counts {
    let me = PerCpu::this();
    let members = member_cpus(&job.cell);
    let workers = members.clone().chain(noise::bystanders(&job.cell));
    let size = workers.clone().count() as u32;
    noise::prepare_block(&job.cell);
    for counter in [&READY, &RUNNING, &DONE] {
        counter.store(0, Release);
    }
    let number = post_work(me, Work::Job(job), workers);
    set_knobs(&job.cell);
    set_tracing(job.traced);
    // Members do this too: otherwise an interrupt left over from an earlier wait would count as an interrupt of this
    // job, and the first sample would have one more check.
    clear_wake_up(me);
    wait_until(|| READY.load(Acquire) == size);
    GO.store(number, Release);
    wait_until(|| RUNNING.load(Acquire) == size);
    let before = pair_counts(&job.cell);
    let start = Counts::now(&me.tally);
    reset_initial_state();
    lead();
    let end = Counts::now(&me.tally);
    let after = pair_counts(&job.cell);
    OVER.store(number, Release);
    wait_until(|| DONE.load(Acquire) == size);
    set_tracing(false);
    reset_knobs();
    let mut sum = Counts::ZERO;
    sum.add(&start, &end);
    sum.ends = core::array::from_fn(|n| after[n] - before[n]);
    for member in members {
        let counts = *member.counts.lock();
        sum.add(&Counts::ZERO, &counts);
    }
    sum
}

/// Takes part in jobs, for ever: this is the loop of every CPU but the first.
pub fn serve_jobs() -> ! {
    let me = PerCpu::this();
    let unfinished = me.unfinished.swap(false, AcqRel);
    let seen = POSTED.lock().number.wrapping_sub(u32::from(unfinished));
    loop {
        serve_jobs_until(me, seen, || false);
    }
}

/// Takes part in the jobs after number `seen`, until `over` returns true.
fn serve_jobs_until(me: &PerCpu, mut seen: u32, over: impl Fn() -> bool) {
    while !over() {
        post::serve_task(me);
        // Number and work are read under one lock; otherwise, one job could be mistaken for the next.
        let Posted { number, work } = *POSTED.lock();
        if number == seen {
            idle::park(me);
            continue;
        }
        seen = number;
        match work {
            Some(Work::Job(job)) if has_cpu(member_cpus(&job.cell), me) => do_job(me, number, &job),
            Some(Work::Job(job)) if has_cpu(noise::bystanders(&job.cell), me) => {
                make_noise(me, number, &job.cell);
            }
            Some(Work::All(task)) => {
                clear_wake_up(me);
                task();
                DONE.fetch_add(1, AcqRel);
            }
            _ => {}
        }
    }
}

fn has_cpu(mut cpus: impl Iterator<Item = &'static PerCpu>, me: &PerCpu) -> bool {
    cpus.any(|cpu| core::ptr::eq(cpu, me))
}

/// Makes the noise of `cell`, from before the first sample until after the last one. The interrupts
/// of the noise are delivered like the measured interrupts.
fn make_noise(me: &PerCpu, number: u32, cell: &Cell) {
    if hypervisor::exists() {
        set_exit_knobs(cell.trap, cell.deliver);
    }
    clear_wake_up(me);
    let begun = || {
        READY.fetch_add(1, AcqRel);
        RUNNING.fetch_add(1, AcqRel);
    };
    noise::make_noise(me, cell, begun, || OVER.load(Acquire) == number);
    reset_knobs();
    DONE.fetch_add(1, AcqRel);
}

/// Gives every measurement an equal initial state, whatever was measured before. A leftover event would make
/// one WFE return at once. Where an exception return is not an event, as in QEMU, a loop of WFEs could then
/// continue for ever in its initial pattern: with an exit for a trapped WFE in each round trip, or in none.
fn reset_initial_state() {
    arch::insn::forget_events();
}

fn do_job(me: &PerCpu, number: u32, job: &Job) {
    set_knobs(&job.cell);
    set_tracing(job.traced);
    clear_wake_up(me);
    let block = Block {
        cell: job.cell,
        count: job.count,
    };
    if job.cell.workload.has_tasks() {
        block.begin_on_cpu();
    }
    READY.fetch_add(1, AcqRel);
    wait_until(|| GO.load(Acquire) == number);
    // A CPU reports that it is ready when its next step is to wait.
    let setting = Setting {
        timed: job.traced,
        noting: job.traced,
        ..wait_mode(&job.cell)
    };
    let start = Counts::now(&me.tally);
    reset_initial_state();
    RUNNING.fetch_add(1, AcqRel);
    match job.cell.workload {
        Workload::Pingpong => {
            let waker = new_waker(&job.cell, leader_cpu(&job.cell));
            match logs::cpu_logs(me).filter(|_| job.traced) {
                Some([log, _]) => {
                    let count = job.count;
                    idle::run_body(&setting, &mut FarSide { waker, count, log });
                }
                None => {
                    // `black_box` hides the origin of the number from the compiler. If the compiler knew the number to
                    // be a sum, the loop, which is in the sample, would keep both summands.
                    let count = black_box(round_count(job.cell.workload, job.count));
                    idle::run_body(&setting, &mut Far { waker, count });
                }
            }
        }
        Workload::Ipi => idle::run_body(&setting, &mut Called),
        _ => block.run(),
    }
    // The work of a member after its last answer must not be in the leader's last sample, as would
    // happen if one thread ran all CPUs.
    wait_until(|| OVER.load(Acquire) == number);
    let end = Counts::now(&me.tally);
    set_tracing(false);
    reset_knobs();
    let mut counts = Counts::ZERO;
    counts.add(&start, &end);
    *me.counts.lock() = counts;
    DONE.fetch_add(1, AcqRel);
}
