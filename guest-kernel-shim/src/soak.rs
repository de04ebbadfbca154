// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything at once and at random, for as long as one likes, to break what can
//! be broken: `rouse.soak=COUNT rouse.seed=S`, and `rouse.stress=COUNT` for
//! wake-ups alone.
//!
//! [`tokens`] wander from CPU to CPU. Each one that arrives is a step of the CPU
//! that it arrives at: the CPU draws an [`operation`], does it, and passes the
//! token on; without a token it waits, in a way that it draws anew now and
//! then. What is drawn in a step is a function of seed, CPU and number of the
//! step, so the sequence of each CPU is that of the seed on any machine, and on
//! one that counts instructions the whole run repeats.
//!
//! After some thousand wake-ups all CPUs meet at a quiescent point: nobody sends
//! any more, everything that was sent arrives, nothing may be left. These are
//! the invariants ([`check`], [`books`]), of which the first that does not hold
//! ends the machine, with what each CPU did last:
//!
//! | invariant | seen by |
//! |---|---|
//! | no wake-up is lost | EL2's watchdog: nothing moves any more; the tokens are counted |
//! | no interrupt is lost or comes twice | each is counted at the sender and in the receiver's handler; where none can merge both numbers are equal when all is quiet, and never are there more taken than sent |
//! | no list register is stuck | EL2's audit: list registers, queue, pending and active state agree at any time, and are empty when all is quiet |
//! | masks are balanced | DAIF, priority mask, group enable, running priority after every operation; enables and priorities when all is quiet |
//! | nothing goes back | EL2's counters and times per vCPU; the count, from any CPU to another by a message |
//! | nothing leaks | request words, mailboxes, queue, requests to the vGIC, stacks of both levels when all is quiet |
//!
//! The first CPU's interrupts stay at EL2, where the watchdog is.

pub mod books;
mod check;
mod operation;
mod power;
mod rest;
mod tokens;
pub mod violation;
mod waits;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use platform::MAX_CPUS;

use self::operation::Operation;
use self::violation::{SEED, note};
use crate::interrupts::{self, Listener, redistributor};
use crate::percpu::{self, PerCpu};
use crate::random::Random;
use crate::workload::call;
use crate::{clock, crew, hypervisor, output, report, stage};
use plan::Fault;

/// Wake-ups between two quiescent points.
const STRETCH: u64 = 2000;
/// Nothing moving for this long is a lost wake-up, microseconds; far longer
/// than any CPU of an overloaded emulator stands still.
const WATCH_US: u32 = 20_000_000;
/// The same where one is lost on purpose.
const WATCH_LOSS_US: u32 = 20_000;
/// Reports of progress.
const REPORTS: u64 = 40;

/// What is done beside waking and waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Every operation.
    All,
    /// None.
    WakeUps,
}

/// The fault that is asked for, by its place in the list + 1; 0 is none.
static FAULT: AtomicU32 = AtomicU32::new(0);
static OPERATIONS: AtomicBool = AtomicBool::new(false);
/// The stretch that runs, from 0, and how many there are.
static STRETCHES: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Steps that each CPU has begun.
static STEPS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
static COUNTS_INSTRUCTIONS: AtomicBool = AtomicBool::new(false);

/// Whether `fault` is to be made.
fn planted(fault: Fault) -> bool {
    FAULT.load(Relaxed) == 1 + fault as u32
}

/// Waits until `reached`, long enough for any machine; whether it was. Where a
/// tick is an instruction, a CPU that waits is not slow but forgotten.
fn wait_for(reached: impl Fn() -> bool) -> bool {
    let limit = if COUNTS_INSTRUCTIONS.load(Relaxed) {
        clock::ticks(200_000)
    } else {
        20 * clock::frequency()
    };
    clock::wait_at_most(limit, reached)
}

/// Sends `count` wake-ups. Comes back only if every invariant held.
pub fn run(count: u64, seed: u64, mix: Mix, fault: Option<Fault>) -> Result<(), &'static str> {
    let cpus = percpu::all().len();
    stage!("soak", "{count} wake-ups, seed {seed}");
    if percpu::online().count() != cpus {
        return Err("a CPU did not start");
    }
    if !(2..=books::MAX_SENDERS as usize).contains(&cpus) {
        return Err("needs 2 to 8 CPUs; use --cpus");
    }
    SEED.store(seed, Release);
    COUNTS_INSTRUCTIONS.store(clock::counts_instructions(), Relaxed);
    FAULT.store(fault.map_or(0, |fault| 1 + fault as u32), Release);
    OPERATIONS.store(mix == Mix::All, Release);
    STRETCHES.store(count.div_ceil(STRETCH), Release);
    call::prepare(0);
    let points = tokens::deal();
    for cpu in percpu::all() {
        let spi = operation::spi_of(cpu);
        spi.set_group1();
        spi.route(cpu.mpidr);
        spi.enable();
    }
    watch(
        points,
        match fault {
            Some(Fault::LostWakeUp | Fault::SoakLostWakeUp | Fault::SgiLost) => WATCH_LOSS_US,
            _ => WATCH_US,
        },
    );
    tokens::start(STRETCH.min(count));
    interrupts::listen(Listener::Soak);
    crew::everywhere(runner);
    interrupts::listen(Listener::Nobody);
    watch(points, 0);
    progress();
    report_operations();
    output::line(format_args!(
        "soak: {} wake-ups sent on {cpus} CPUs, seed {seed}, digest {:#018x}: 0 lost",
        tokens::sent(),
        digest(),
    ));
    Ok(())
}

fn watch(points: u64, microseconds: u32) {
    if hypervisor::present() {
        hypervisor::watch(points, clock::ticks(microseconds));
    }
}

/// What every CPU does; one that was off begins here again.
fn runner() {
    let me = PerCpu::this();
    redistributor(me).enable_all(check::enabled());
    power::arrived(me);
    while NUMBER.load(Acquire) < STRETCHES.load(Acquire) {
        // For the dump, should it come to that; with operations they decide.
        crew::trace(!has_operations());
        while !tokens::stopped() {
            waits::some(me);
        }
        rest::rest(me);
    }
}

/// The generator of this CPU's next step, and its number.
fn next(me: &PerCpu) -> (u64, Random) {
    let step = STEPS[me.index].fetch_add(1, Relaxed);
    let seed = SEED.load(Relaxed);
    (step, Random::at(seed, me.index as u64, step))
}

/// Does what has arrived for this CPU.
fn serve(me: &'static PerCpu) {
    power::serve(me);
    while !tokens::stopped() && tokens::take(me) {
        step(me);
    }
}

/// A step: an operation, and a token for another CPU.
fn step(me: &'static PerCpu) {
    let (step, mut random) = next(me);
    let operation = Operation::draw(&mut random);
    if !has_operations() {
        tokens::pass(me, &mut random);
        return;
    }
    note(me, operation.name(), step, 0);
    operation.count();
    // Whoever is off keeps no token.
    if operation == Operation::Off {
        tokens::pass(me, &mut random);
        operation.run(me, &mut random);
        return;
    }
    operation.run(me, &mut random);
    check::masks(operation.name());
    tokens::pass(me, &mut random);
}

/// Whether this stretch has operations; some have none, because an interrupt of
/// one of them could make good what a wake-up had lost.
fn has_operations() -> bool {
    OPERATIONS.load(Relaxed) && NUMBER.load(Acquire) % 4 != 3
}

/// Steps of all CPUs.
fn steps() -> u64 {
    STEPS.iter().map(|steps| steps.load(Acquire)).sum()
}

/// A number that is the same for two runs that did the same.
fn digest() -> u64 {
    let steps = STEPS.iter().map(|steps| steps.load(Acquire));
    steps.fold(tokens::sent(), |sum, steps| {
        sum.wrapping_mul(0x0100_0000_01b3) ^ steps
    })
}

/// Reports how far it is.
fn progress() {
    let (done, of) = (tokens::sent(), STRETCHES.load(Acquire) * STRETCH);
    let (switches, off) = (Operation::Deliver.done(), Operation::Off.done());
    report::soak("steps", steps());
    report::soak("wake-ups", done);
    report::soak(Operation::Deliver.name(), switches);
    report::soak(Operation::Off.name(), off);
    report::progress_at(
        done,
        of,
        format_args!("{} steps, {switches} switches, {off} off and on", steps()),
    );
}

/// Reports what was done how often.
fn report_operations() {
    for &(operation, name, _) in Operation::ALL {
        report::soak(name, operation.done());
    }
}
