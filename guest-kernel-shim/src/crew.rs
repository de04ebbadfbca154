// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs that take part in a measurement, and how they start and end a
//! block of it together.
//!
//! The first CPU leads: it posts a job, wakes who takes part, and all of them
//! turn their knobs. When everyone is ready the leader lets go; who is done
//! puts its knobs back, leaves its counts and parks. Between jobs CPUs wait in
//! a plain WFI, so that they cost nothing.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use abi::{Counter, KnobValue};
use arch::insn;
use arch::regs::CNTKCTL_EL1;
use plan::{Cell, Deliver, Hint, HostPoll, Shape, Trap, Wake, WfiBarrier, Workload};
use spin::mutex::SpinMutex;
use wait::request::{CALL, RESCHED};
use wait::stream::{self, Stream};
use wait::target::Target;

use crate::idle::{self, Setting};
use crate::kernel::block::Block;
use crate::percpu::{self, PerCpu};
use crate::tally::Event;
use crate::wake::Waker;
use crate::workload::ipi::Called;
use crate::workload::pingpong::Far;
use crate::workload::stages::FarSide;
use crate::{clock, hostile, hypervisor, interrupts, pmu, probe, vectors};

/// A part of a cell that is run without a pause.
#[derive(Clone, Copy)]
pub struct Job {
    /// What.
    pub cell: Cell,
    /// How often.
    pub count: u32,
    /// With time stamps: see [`crate::workload::stages`].
    pub traced: bool,
}

/// What was posted last, and its number: a change is what members wait for.
///
/// Whoever posts holds the lock until all that it is for have been woken. So who
/// finds work here has its wake-up already, and can use it up ([`begin`]): one
/// that came later, however long the waker is away between the two, would
/// be taken for a wake-up of the work itself, which then would have one too many.
static POSTED: SpinMutex<Posted> = SpinMutex::new(Posted {
    number: 0,
    work: None,
});

#[derive(Clone, Copy)]
struct Posted {
    number: u32,
    work: Option<Work>,
}

/// What is posted to all.
#[derive(Clone, Copy)]
enum Work {
    /// A job of a measurement.
    Job(Job),
    /// A function that every CPU is to run.
    All(fn()),
}

/// Something that one CPU is to do: its index, and what.
type Task = (usize, fn());
/// The task that was posted last, until it is taken; see [`on`]. The lock is held
/// as that of [`POSTED`] is.
static TASK: SpinMutex<Option<Task>> = SpinMutex::new(None);
/// Members that have turned their knobs.
static READY: AtomicU32 = AtomicU32::new(0);
/// Number of the job that may run.
static GO: AtomicU32 = AtomicU32::new(0);
/// Members that are running.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Number of the job whose last sample is taken.
static OVER: AtomicU32 = AtomicU32::new(0);
/// Members that have finished.
static DONE: AtomicU32 = AtomicU32::new(0);

/// What a CPU counted while it took part.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// By the hypervisor.
    pub exits: [u64; Counter::COUNT],
    /// By the guest.
    pub events: [u64; Event::ALL.len()],
    /// Ticks at EL2, in the places of `exits`.
    pub times: [u64; Counter::COUNT],
    /// Ticks that it took part.
    pub duration: u64,
    /// Cycles and instructions by the PMU, at EL1 and EL2; see [`crate::pmu`].
    pub pmu: [u64; 2],
}

impl Counts {
    /// All zero.
    pub const ZERO: Self = Self {
        exits: [0; Counter::COUNT],
        events: [0; Event::ALL.len()],
        times: [0; Counter::COUNT],
        duration: 0,
        pmu: [0; 2],
    };

    /// What this CPU has counted up to now.
    fn now(cpu: &PerCpu) -> Self {
        let none = [0; Counter::COUNT];
        let (exits, times) = if hypervisor::present() {
            (hypervisor::counters(), hypervisor::times())
        } else {
            (none, none)
        };
        Self {
            exits,
            events: Event::ALL.map(|(event, _)| cpu.tally.get(event)),
            times,
            duration: clock::now(),
            pmu: pmu::read(),
        }
    }

    /// Adds what was counted from `start` to `end`.
    pub fn add(&mut self, start: &Self, end: &Self) {
        for (n, sum) in self.exits.iter_mut().enumerate() {
            *sum += end.exits[n] - start.exits[n];
        }
        for (n, sum) in self.events.iter_mut().enumerate() {
            *sum += end.events[n] - start.events[n];
        }
        for (n, sum) in self.times.iter_mut().enumerate() {
            *sum += end.times[n] - start.times[n];
        }
        self.duration += end.duration - start.duration;
        for (n, sum) in self.pmu.iter_mut().enumerate() {
            *sum += end.pmu[n].wrapping_sub(start.pmu[n]);
        }
    }
}

/// How many CPUs take part in `cell` beside the leader.
pub fn members(cell: &Cell) -> usize {
    let others = percpu::online().count() - 1;
    match (cell.workload, cell.shape) {
        (Workload::Stream | Workload::Overshoot, _) => 0,
        (
            Workload::Ipistorm
            | Workload::Messaging
            | Workload::Notify
            | Workload::Io
            | Workload::Timer
            | Workload::Idle,
            _,
        ) => others,
        (Workload::Pingpong, _) | (Workload::Ipi, Shape::One) => 1,
        (Workload::Ipi, Shape::Broadcast) => others,
        (Workload::Ipi, Shape::Dry | Shape::Itself) => 0,
    }
}

/// How a CPU waits in `cell`.
pub fn setting(cell: &Cell) -> Setting {
    /// A WFET without a limit of its own returns after this long.
    const BOUND_US: u32 = 100;
    Setting {
        wait: cell.wait,
        // Without elision a function call is the interrupt's matter alone.
        wanted: match cell.wake {
            Wake::Ipi => RESCHED,
            Wake::Elide => RESCHED | CALL,
        },
        limit: clock::ticks(cell.poll_limit_us),
        bound: clock::ticks(BOUND_US),
        wfxt: probe::features().wfxt,
        stream: cell.event_stream_us != 0,
        timed: cell.gap_us != 0,
        barrier: match cell.wfi_barrier {
            WfiBarrier::None => false,
            WfiBarrier::Dsb => true,
        },
        standby_us: cell.standby_us,
        psd_ms: cell.psd_ms,
    }
}

/// A waker of `target` for `cell`.
pub fn waker(cell: &Cell, target: &'static PerCpu) -> Waker {
    let (bit, intid) = match cell.workload {
        Workload::Ipi => (CALL, interrupts::CALL),
        _ => (RESCHED, interrupts::RESCHED),
    };
    let (elide, event) = (cell.wake.elides(), cell.wait.needs_sev());
    Waker::new(target, bit, intid, elide, event)
}

/// The event stream of `cell`, as the counter can make it.
pub fn stream(cell: &Cell) -> Option<Stream> {
    let ecv = probe::features().ecv;
    Stream::nearest(cell.event_stream_us, clock::frequency(), ecv)
}

/// Turns this CPU's knobs for `cell`.
pub fn turn(cell: &Cell) {
    let fields = stream(cell).map_or(0, Stream::fields);
    CNTKCTL_EL1.set(CNTKCTL_EL1.get() & !stream::FIELDS | fields);
    insn::isb();
    if hypervisor::present() {
        let adaptive = cell.host_poll == HostPoll::Adaptive && cell.host_poll_us != 0;
        hypervisor::set(KnobValue::HostPoll(clock::ticks(cell.host_poll_us)));
        hypervisor::set(KnobValue::HostPollAdaptive(adaptive));
        hypervisor::set(KnobValue::GuestPolls(cell.hint == Hint::Tell));
        turn_exits(cell.trap, cell.deliver);
    }
}

/// Turns the knobs that decide what exits.
fn turn_exits(trap: Trap, deliver: Deliver) {
    hypervisor::set_trap(trap);
    hypervisor::set_deliver(deliver);
}

/// Turns them on the first two CPUs, for good.
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

/// Turns them back.
pub fn turn_back() {
    CNTKCTL_EL1.set(CNTKCTL_EL1.get() & !stream::FIELDS);
    insn::isb();
    if hypervisor::present() {
        hypervisor::set_deliver(Deliver::Inject);
        hypervisor::set_trap(Trap::None);
        hypervisor::set(KnobValue::HostPoll(0));
        hypervisor::set(KnobValue::HostPollAdaptive(false));
        hypervisor::set(KnobValue::GuestPolls(false));
    }
}

/// Turns time stamps on or off for this CPU, at both levels.
pub fn trace(on: bool) {
    vectors::trace(on);
    if hypervisor::present() {
        hypervisor::set(KnobValue::Trace(on));
    }
}

/// Runs `job`: `lead` is the leader's part. Answers what all counted.
pub fn run(job: Job, lead: impl FnOnce()) -> Counts {
    let me = PerCpu::this();
    let crew = percpu::online().skip(1).take(members(&job.cell));
    let size = crew.clone().count() as u32;
    for counter in [&READY, &RUNNING, &DONE] {
        counter.store(0, Release);
    }
    let number = post(me, Work::Job(job), crew.clone());
    turn(&job.cell);
    trace(job.traced);
    until(|| READY.load(Acquire) == size);
    GO.store(number, Release);
    until(|| RUNNING.load(Acquire) == size);
    let start = Counts::now(me);
    lead();
    let end = Counts::now(me);
    OVER.store(number, Release);
    until(|| DONE.load(Acquire) == size);
    trace(false);
    turn_back();
    let mut sum = Counts::ZERO;
    sum.add(&start, &end);
    for member in crew {
        let counts = *member.counts.lock();
        sum.add(&Counts::ZERO, &counts);
    }
    sum
}

/// Posts `work` and wakes `who` it is for; its number.
fn post(me: &PerCpu, work: Work, who: impl Iterator<Item = &'static PerCpu>) -> u32 {
    let mut posted = POSTED.lock();
    let number = posted.number.wrapping_add(1);
    *posted = Posted {
        number,
        work: Some(work),
    };
    who.for_each(|cpu| call(me, cpu));
    number
}

/// Wakes `cpu`, for which there is work.
fn call(me: &PerCpu, cpu: &'static PerCpu) {
    Waker::new(cpu, RESCHED, interrupts::RESCHED, false, false).wake(me);
}

/// Uses up what woke this CPU for the work that it is about to begin: in the work
/// it would be of no meaning. If it stands for more than that, the next look
/// finds it.
fn begin(me: &PerCpu) {
    me.request.take(RESCHED);
    me.take_interrupted();
}

/// Takes part in jobs, for ever: what every CPU but the first does.
pub fn serve() -> ! {
    let me = PerCpu::this();
    let unfinished = me.unfinished.swap(false, AcqRel);
    let mut seen = POSTED.lock().number.wrapping_sub(u32::from(unfinished));
    loop {
        let task = TASK.lock().take_if(|(index, _)| *index == me.index);
        if let Some((_, task)) = task {
            begin(me);
            task();
            DONE.fetch_add(1, AcqRel);
        }
        hostile::serve(me);
        // Together, or the number of one would be taken for that of the next.
        let Posted { number, work } = *POSTED.lock();
        if number == seen {
            idle::park(me);
            continue;
        }
        seen = number;
        match work {
            Some(Work::Job(job)) if takes_part(me, &job.cell) => take_part(me, number, &job),
            Some(Work::All(task)) => {
                begin(me);
                task();
                DONE.fetch_add(1, AcqRel);
            }
            _ => {}
        }
    }
}

/// Has every CPU, this one included, do `task`, and waits until all have.
pub fn everywhere(task: fn()) {
    let me = PerCpu::this();
    let others = percpu::online().skip(1);
    DONE.store(0, Release);
    post(me, Work::All(task), others.clone());
    task();
    until(|| DONE.load(Acquire) as usize == others.clone().count());
}

/// Has the second CPU do `task`, and goes on meanwhile.
pub fn on_second(task: fn()) {
    DONE.store(0, Release);
    on(percpu::all()[1], task);
}

/// Has `cpu`, which is not the first one, do `task`.
pub fn on(cpu: &'static PerCpu, task: fn()) {
    let mut slot = TASK.lock();
    *slot = Some((cpu.index, task));
    call(PerCpu::this(), cpu);
}

/// Waits until the second CPU has done it.
pub fn wait_for_second() {
    until(|| DONE.load(Acquire) == 1);
}

/// This CPU is about to be turned off in the middle of a task for all: when it
/// is on again it begins the task anew.
pub fn begin_anew(me: &PerCpu) {
    me.unfinished.store(true, Release);
}

fn takes_part(me: &PerCpu, cell: &Cell) -> bool {
    let mut crew = percpu::online().skip(1).take(members(cell));
    crew.any(|member| core::ptr::eq(member, me))
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
    // A CPU reports ready once it only has to wait.
    let setting = Setting {
        timed: job.traced || job.cell.gap_us != 0,
        ..setting(&job.cell)
    };
    let start = Counts::now(me);
    RUNNING.fetch_add(1, AcqRel);
    match job.cell.workload {
        Workload::Pingpong => {
            let waker = waker(&job.cell, percpu::all()[0]);
            let count = job.count;
            if job.traced {
                idle::with(&setting, &mut FarSide { waker, count });
            } else {
                idle::with(&setting, &mut Far { waker, count });
            }
        }
        Workload::Ipi => idle::with(&setting, &mut Called),
        _ => block.run(),
    }
    // What a member does after its last answer must not be in the leader's last
    // sample: where one thread runs all CPUs it would be.
    until(|| OVER.load(Acquire) == number);
    let end = Counts::now(me);
    trace(false);
    turn_back();
    let mut counts = Counts::ZERO;
    counts.add(&start, &end);
    *me.counts.lock() = counts;
    DONE.fetch_add(1, AcqRel);
}

/// Waits until `reached`, letting an emulator run the other CPUs.
fn until(reached: impl Fn() -> bool) {
    while !reached() {
        insn::yield_now();
    }
}
