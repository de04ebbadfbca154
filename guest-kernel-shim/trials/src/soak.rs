// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does everything at the same time and at random, for any length of time, to find what can break: `rouse.soak=COUNT
//! rouse.seed=S`, and `rouse.stress=COUNT` for wake-ups alone.
//!
//! [`tokens`] wander from CPU to CPU. Each token that arrives at a CPU makes the CPU do a step: it draws an
//! [`operation`], performs it, and passes the token on. Without a token, the CPU waits, in a way that it draws again
//! from time to time. Each step is drawn from the seed, the CPU's number and the step's number, so the seed fixes each
//! CPU's sequence on any machine. On a machine that counts instructions, the whole run repeats.
//!
//! After some thousand wake-ups, all CPUs meet at a quiescent point: no CPU sends any more, everything that was sent
//! arrives, and nothing may be left. The table lists the invariants ([`check`], [`books`]); the first invariant that
//! does not hold ends the machine, and each CPU's last actions are printed:
//!
//! | invariant | seen by |
//! |---|---|
//! | no wake-up is lost | EL2's watchdog, because no CPU makes progress; the count of tokens |
//! | no interrupt is lost or taken twice | each is counted at the sender and in the receiver's handler; where none can merge, both numbers are equal when all is quiet; never are more taken than sent |
//! | no list register is stuck | EL2's audit: list registers, queue, pending and active state agree at any time, and are empty when all is quiet |
//! | masks are balanced | DAIF, priority mask, group enable, running priority after every operation; enables and priorities when all is quiet |
//! | no count decreases | EL2's counters and times per vCPU; the counter, which a message carries from any CPU to another |
//! | nothing of a neighbour changes | the neighbour itself: registers and memory that it checks |
//! | nothing leaks | request words, pending words, queue, requests to the vGIC, stacks of both levels when all is quiet |
//!
//! EL2 keeps delivering the first CPU's interrupts, because the watchdog runs there.

mod books;
mod check;
mod neighbour;
mod operation;
mod power;
mod progress;
mod quiescence;
mod state;
mod step;
mod tokens;
mod violation;
mod waits;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use guest_kernel_shim::interrupts::{self, redistributor};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::workload::call;
use guest_kernel_shim::{clock, hypervisor, knobs, output, stage, workers};
use plan::{CallFault, Fault, SoakFault};

use self::progress::{operation_digest, report_operations, report_progress};
use self::quiescence::run_point;
use self::state::{COUNTS_INSTRUCTIONS, EPOCH, EPOCHS, FAULT, NUMBER, OPERATIONS, has_operations};
use self::violation::SEED;

/// If no CPU makes progress for this long, in microseconds, a wake-up was lost: no CPU stands still for nearly as long,
/// even on an overloaded emulator.
const WATCH_US: u32 = 20_000_000;
/// Like [`WATCH_US`], for runs in which a wake-up is lost on purpose.
const WATCH_LOSS_US: u32 = 20_000;
/// The operations that the soak performs, besides waking and waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Every operation.
    All,
    /// No operation.
    WakeUps,
}

/// Sends `count` wake-ups. Returns `Ok` only if every invariant held.
pub fn run(count: u64, seed: u64, mix: Mix, fault: Option<Fault>) -> Result<(), &'static str> {
    let cpus = percpu::all().len();
    stage!("soak", "{count} wake-ups, seed {seed}");
    if percpu::online().count() != cpus {
        return Err("a CPU did not start");
    }
    if !(2..=books::sender_count() as usize).contains(&cpus) {
        return Err("needs 2 to 8 CPUs, or to 4 where the secure world has SGIs; use --cpus");
    }
    neighbour::find_support();
    SEED.store(seed, Release);
    COUNTS_INSTRUCTIONS.store(clock::counts_instructions(), Relaxed);
    let ours = match fault {
        Some(Fault::Soak(fault)) => 1 + fault as u32,
        _ => 0,
    };
    FAULT.store(ours, Release);
    OPERATIONS.store(mix == Mix::All, Release);
    EPOCHS.store(count.div_ceil(EPOCH), Release);
    call::prepare_calls(0);
    let points = tokens::deal_tokens();
    for cpu in percpu::all() {
        let spi = books::spi_of(cpu);
        spi.set_group1();
        spi.route(cpu.mpidr);
        spi.enable();
    }
    set_watch(
        points,
        match fault {
            Some(Fault::Soak(SoakFault::LostWakeUp) | Fault::Call(CallFault::SgiLost)) => {
                WATCH_LOSS_US
            }
            _ => WATCH_US,
        },
    );
    tokens::start_epoch(EPOCH.min(count));
    interrupts::set_listener(Some(books::note_interrupt));
    workers::run_on_all(run_soak);
    interrupts::set_listener(None);
    set_watch(points, 0);
    report_progress();
    report_operations();
    if neighbour::is_possible() {
        let (units, turns) = neighbour::work_done();
        output::print(format_args!(
            "soak: the first CPU's neighbour did {units} units in {turns} turns"
        ));
    }
    output::print(format_args!(
        "soak: {} wake-ups sent on {cpus} CPUs, seed {seed}, digest {:#018x}: 0 lost",
        tokens::sent_count(),
        operation_digest(),
    ));
    Ok(())
}

fn set_watch(points: u64, microseconds: u32) {
    if hypervisor::exists() {
        hypervisor::set_watch(points, clock::us_to_ticks(microseconds));
    }
}

/// Runs the soak on every CPU; a CPU that was turned off and on again begins here.
fn run_soak() {
    let me = PerCpu::this();
    redistributor(me).enable_all(check::enabled_interrupts());
    power::note_arrival(me);
    while NUMBER.load(Acquire) < EPOCHS.load(Acquire) {
        // Time stamps are taken for a possible dump. In an epoch with operations, an operation turns them on or off.
        knobs::set_tracing(!has_operations());
        while !tokens::is_epoch_over() {
            waits::wait_some(me);
        }
        run_point(me);
    }
}
