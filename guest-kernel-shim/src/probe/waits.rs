// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine makes of the instructions that wait: tried out, because
//! nothing says so. Every trial is bounded by the [`alarm`].

use abi::KnobValue;
use arch::insn;
use arch::regs::CNTKCTL_EL1;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};
use wait::stream::{self, Stream};

use super::{Answer, features};
use crate::{alarm, clock, crew, hypervisor, percpu};

/// When the other CPU acts, microseconds.
const ACTION_US: u32 = 100;
/// When a trial ends at the latest, microseconds.
const BOUND_US: u32 = 2000;
/// A wait that is shorter did not wait, microseconds.
const AT_ONCE_US: u32 = 50;

/// Ticks that `wait` takes, with the event register empty before and the alarm
/// as the bound. It is emptied last: what comes before may trap, and the return
/// from EL2 is an event.
fn time(wait: impl FnOnce()) -> u64 {
    alarm::enable();
    alarm::set(clock::ticks(BOUND_US));
    insn::sevl();
    insn::wfe();
    let start = clock::now();
    wait();
    let ticks = clock::now() - start;
    alarm::clear();
    ticks
}

fn at_once(ticks: u64) -> bool {
    ticks < clock::ticks(AT_ONCE_US)
}

fn at_bound(ticks: u64) -> bool {
    ticks >= clock::ticks(BOUND_US)
}

/// WFE with an empty event register waits.
pub fn wfe_halts() -> Answer {
    let ticks = time(insn::wfe);
    Answer::timed(!at_once(ticks), ticks)
}

/// What the second CPU is to do, and to what.
#[repr(align(64))]
struct Line(AtomicU32);
static LINE: Line = Line(AtomicU32::new(0));

/// Has the second CPU do `act` after [`ACTION_US`], counted from when it is told.
fn soon(act: fn()) {
    crew::on_second(act);
}

/// SEV of another CPU ends a WFE.
pub fn sev_wakes_wfe() -> Answer {
    soon(|| {
        clock::pause(clock::ticks(ACTION_US));
        insn::sev();
    });
    let ticks = time(insn::wfe);
    crew::wait_for_second();
    Answer::timed(!at_once(ticks) && !at_bound(ticks), ticks)
}

/// A store of another CPU to a line on which the monitor is armed ends a WFE,
/// and nothing else does before.
pub fn monitor_wakes_wfe() -> Answer {
    soon(|| {
        clock::pause(clock::ticks(ACTION_US));
        LINE.0.store(1, Release);
    });
    let ticks = time(|| {
        insn::load_exclusive(&LINE.0);
        insn::wfe();
    });
    insn::clrex();
    crew::wait_for_second();
    LINE.0.load(Acquire);
    Answer::timed(!at_once(ticks) && !at_bound(ticks), ticks)
}

/// WFET waits until its deadline.
pub fn wfet_halts() -> Answer {
    if !features().wfxt {
        return Answer::not_run("no FEAT_WFxT");
    }
    let ticks = time(|| insn::wfet(clock::now() + clock::ticks(ACTION_US)));
    let asked = clock::ticks(ACTION_US);
    Answer::timed(ticks >= asked && ticks < 2 * asked, ticks)
}

/// A WFET that ran into its deadline leaves the event register set.
pub fn wfet_timeout_sets_event() -> Answer {
    if !features().wfxt {
        return Answer::not_run("no FEAT_WFxT");
    }
    let mut second = 0;
    time(|| {
        let wait = || insn::wfet(clock::now() + clock::ticks(ACTION_US));
        wait();
        let start = clock::now();
        wait();
        second = clock::now() - start;
    });
    Answer::timed(at_once(second), second)
}

/// The stream that Linux asks for.
fn stream() -> Option<Stream> {
    Stream::nearest(100, clock::frequency(), features().ecv)
}

/// Whether WFE ends once per period of `stream`, which is on.
fn periodic(stream: Stream) -> Answer {
    let mut periods = [0; 8];
    for period in &mut periods {
        *period = time(insn::wfe);
    }
    periods.sort_unstable();
    // A wait begins somewhere in a period, so it lasts half of one on average.
    let median = periods[periods.len() / 2];
    let made = stream.period();
    Answer::timed(median >= made / 8 && median <= 2 * made, median)
}

/// The event stream of EL1 ends a WFE once per period.
pub fn event_stream_period_ok() -> Answer {
    let Some(stream) = stream() else {
        return Answer::not_run("the counter can't make 100 us");
    };
    let kept = CNTKCTL_EL1.get();
    CNTKCTL_EL1.set(kept & !stream::FIELDS | stream.fields());
    insn::isb();
    let answer = periodic(stream);
    CNTKCTL_EL1.set(kept);
    insn::isb();
    answer
}

/// The event stream of EL2 does so as well.
pub fn el2_event_stream_period_ok() -> Answer {
    let Some(stream) = stream().filter(|_| hypervisor::present()) else {
        return Answer::not_run("needs EL2");
    };
    hypervisor::set(KnobValue::EventStream(stream.fields()));
    let answer = periodic(stream);
    hypervisor::set(KnobValue::EventStream(0));
    answer
}

/// An exception return sets the event register.
pub fn eret_sets_event() -> Answer {
    let ticks = time(|| {
        crate::vectors::catching(|| {
            // SAFETY: the handler steps over it and returns; nothing changes.
            unsafe { core::arch::asm!("udf #0", options(nomem, nostack)) }
        });
        insn::wfe();
    });
    Answer::timed(at_once(ticks), ticks)
}

/// A masked interrupt ends a WFE, which it need not.
pub fn masked_irq_wakes_wfe() -> Answer {
    soon(|| {
        // For machines where it does not: an event ends the trial.
        clock::pause(clock::ticks(2 * BOUND_US));
        insn::sev();
    });
    insn::mask_irq();
    let ticks = time(insn::wfe);
    insn::unmask_irq();
    crew::wait_for_second();
    Answer::timed(ticks < 2 * clock::ticks(BOUND_US) && !at_once(ticks), ticks)
}

/// Whether there is a second CPU to act.
pub fn has_second() -> bool {
    percpu::online().count() > 1
}
