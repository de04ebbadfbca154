// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets the CPUs that take part in a measurement start and end a block of it together.
//!
//! One CPU leads: it posts a job and wakes the CPUs that take part, and all of them set their knobs.
//! The leader is the first CPU, or the sender of the cell's pair ([`lead`]). When all CPUs are
//! ready, the leader starts them. A CPU that is done resets its knobs, leaves its counts and parks.
//! If the cell has [`noise`], CPUs that take no part make the noise from before the first sample
//! until after the last one. Between jobs, CPUs wait in a plain WFI, so that they cost nothing.

pub mod lead;
pub mod noise;
mod post;

use core::hint::black_box;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use plan::{Cell, Deliver, Trap, Workload};
use spin::mutex::SpinMutex;

use self::post::{DONE, POSTED, Posted, Work, begin, post, until};
pub use self::post::{Job, begin_anew, everywhere, leave_to, on, on_second, wait_for_second};
use crate::block::Block;
use crate::counts::Counts;
use crate::hypervisor;
use crate::idle;
use crate::knobs::{setting, trace, turn, turn_back, turn_exits, waker};
use crate::logs;
use crate::percpu::{self, PerCpu};
use crate::setting::Setting;
use crate::tally::Event;
use crate::workload::ipi::Called;
use crate::workload::pingpong::Far;
use crate::workload::samples::made;
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
pub fn leader(cell: &Cell) -> &'static PerCpu {
    let [sender, _] = cell.pair.cpus();
    running_cpu(sender)
}

/// Returns the CPU that the leader of `cell` wakes, if that is a single CPU.
pub fn receiver(cell: &Cell) -> &'static PerCpu {
    let [_, receiver] = cell.pair.cpus();
    running_cpu(receiver)
}

/// Returns the CPU in `place` among the CPUs that run.
fn running_cpu(place: usize) -> &'static PerCpu {
    let cpu = percpu::online().nth(place);
    cpu.expect("a cell between CPUs that do not run is skipped")
}

/// Returns the sender and the receiver of `cell`.
fn ends(cell: &Cell) -> [&'static PerCpu; 2] {
    [leader(cell), receiver(cell)]
}

/// Returns the CPUs that take part in `cell` besides the leader.
pub fn members(cell: &Cell) -> impl Iterator<Item = &'static PerCpu> + Clone {
    let between = cell.has_pair().then(|| receiver(cell));
    let count = match between {
        Some(_) => 0,
        None => cell.members(percpu::online().count()),
    };
    between
        .into_iter()
        .chain(percpu::online().skip(1).take(count))
}

/// Returns the requests sent and interrupts taken so far by sender, receiver and all other CPUs, if
/// `cell` has a pair. With these numbers, a reader can check that the named CPUs were used.
fn pair_counts(cell: &Cell) -> [u64; 3] {
    let mut sums = [0; 3];
    if cell.has_pair() {
        let ends = ends(cell);
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
pub fn turn_everywhere(trap: Trap, deliver: Deliver) {
    static CHOICE: SpinMutex<(Trap, Deliver)> = SpinMutex::new((Trap::None, Deliver::Inject));
    fn turn() {
        let (trap, deliver) = *CHOICE.lock();
        turn_exits(trap, deliver);
    }
    *CHOICE.lock() = (trap, deliver);
    turn();
    if percpu::online().count() > 1 {
        on_second(turn);
        wait_for_second();
    }
}

/// Runs `job`, with `lead` as the leader's part, and returns the counts of all CPUs.
pub fn run(job: Job, lead: impl FnOnce()) -> Counts {
    let me = PerCpu::this();
    let members = members(&job.cell);
    let workers = members.clone().chain(noise::bystanders(&job.cell));
    let size = workers.clone().count() as u32;
    noise::prepare(&job.cell);
    for counter in [&READY, &RUNNING, &DONE] {
        counter.store(0, Release);
    }
    let number = post(me, Work::Job(job), workers);
    turn(&job.cell);
    trace(job.traced);
    // Members do this too: otherwise an interrupt left over from an earlier wait would be taken for
    // an interrupt of this job, and the first sample would have one more check.
    begin(me);
    until(|| READY.load(Acquire) == size);
    GO.store(number, Release);
    until(|| RUNNING.load(Acquire) == size);
    let before = pair_counts(&job.cell);
    let start = Counts::now(&me.tally);
    start_alike();
    lead();
    let end = Counts::now(&me.tally);
    let after = pair_counts(&job.cell);
    OVER.store(number, Release);
    until(|| DONE.load(Acquire) == size);
    trace(false);
    turn_back();
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
pub fn serve() -> ! {
    let me = PerCpu::this();
    let unfinished = me.unfinished.swap(false, AcqRel);
    let seen = POSTED.lock().number.wrapping_sub(u32::from(unfinished));
    loop {
        serve_until(me, seen, || false);
    }
}

/// Takes part in the jobs after number `seen`, until `over` returns true.
fn serve_until(me: &PerCpu, mut seen: u32, over: impl Fn() -> bool) {
    while !over() {
        post::serve_task(me);
        // Number and work are read together; otherwise, one job could be taken for the next.
        let Posted { number, work } = *POSTED.lock();
        if number == seen {
            idle::park(me);
            continue;
        }
        seen = number;
        match work {
            Some(Work::Job(job)) if contains(members(&job.cell), me) => take_part(me, number, &job),
            Some(Work::Job(job)) if contains(noise::bystanders(&job.cell), me) => {
                stand_by(me, number, &job.cell);
            }
            Some(Work::All(task)) => {
                begin(me);
                task();
                DONE.fetch_add(1, AcqRel);
            }
            _ => {}
        }
    }
}

fn contains(mut cpus: impl Iterator<Item = &'static PerCpu>, me: &PerCpu) -> bool {
    cpus.any(|cpu| core::ptr::eq(cpu, me))
}

/// Makes the noise of `cell`, from before the first sample until after the last one. The interrupts
/// of the noise are delivered like the measured interrupts.
fn stand_by(me: &PerCpu, number: u32, cell: &Cell) {
    if hypervisor::present() {
        turn_exits(cell.trap, cell.deliver);
    }
    begin(me);
    let begun = || {
        READY.fetch_add(1, AcqRel);
        RUNNING.fetch_add(1, AcqRel);
    };
    noise::make(me, cell, begun, || OVER.load(Acquire) == number);
    turn_back();
    DONE.fetch_add(1, AcqRel);
}

/// Gives every measurement the same initial state, whatever was measured before. After a leftover event,
/// one WFE fewer waits. Where an exception return is not an event, as in QEMU, a loop of WFEs may then
/// continue for ever as it began: with an exit for a trapped WFE in each round trip, or in none.
fn start_alike() {
    arch::insn::forget_events();
}

fn take_part(me: &PerCpu, number: u32, job: &Job) {
    turn(&job.cell);
    trace(job.traced);
    begin(me);
    let block = Block {
        cell: job.cell,
        count: job.count,
    };
    if job.cell.workload.has_tasks() {
        block.begin();
    }
    READY.fetch_add(1, AcqRel);
    until(|| GO.load(Acquire) == number);
    // A CPU reports that it is ready once it only has to wait.
    let setting = Setting {
        timed: job.traced,
        noting: job.traced,
        ..setting(&job.cell)
    };
    let start = Counts::now(&me.tally);
    start_alike();
    RUNNING.fetch_add(1, AcqRel);
    match job.cell.workload {
        Workload::Pingpong => {
            let waker = waker(&job.cell, leader(&job.cell));
            match logs::logs(me).filter(|_| job.traced) {
                Some([log, _]) => {
                    let count = job.count;
                    idle::with(&setting, &mut FarSide { waker, count, log });
                }
                None => {
                    // This hides the origin of the number from the compiler: if the number were
                    // known to be a sum, the loop, which is in the sample, would keep both summands.
                    let count = black_box(made(job.cell.workload, job.count));
                    idle::with(&setting, &mut Far { waker, count });
                }
            }
        }
        Workload::Ipi => idle::with(&setting, &mut Called),
        _ => block.run(),
    }
    // The work of a member after its last answer must not be in the leader's last sample, as would
    // happen if one thread ran all CPUs.
    until(|| OVER.load(Acquire) == number);
    let end = Counts::now(&me.tally);
    trace(false);
    turn_back();
    let mut counts = Counts::ZERO;
    counts.add(&start, &end);
    *me.counts.lock() = counts;
    DONE.fetch_add(1, AcqRel);
}
